"""Inspections: reads the state of queries, for ``tidegate_spark.inside`` and the agent.

``questions``, ``conditions``, ``selection``, ``last_progress``, ``partition_work`` and ``answers`` are pure;
``checkpoint_logs``, ``checkpoints``, ``state_frames`` and ``reader`` talk to Spark.
"""
