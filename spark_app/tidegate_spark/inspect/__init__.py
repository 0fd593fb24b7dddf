"""State of queries, read while they run or afterwards: what ``tidegate_spark.inside`` offers and the agent answers.

``questions``, ``conditions``, ``selection``, ``figures``, ``partition_work`` and ``answers`` are pure;
``checkpoint_logs``, ``state_frames`` and ``reader`` talk to Spark.
"""
