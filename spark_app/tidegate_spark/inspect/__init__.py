"""Inspections: reads the state of queries, for ``tidegate_spark.inside`` and the agent.

``questions``, ``conditions``, ``selection``, ``figures``, ``partition_work`` and ``answers`` are pure;
``checkpoint_logs``, ``state_frames`` and ``reader`` talk to Spark.
"""
