"""Classifies faults by what Spark, the JVM and stores report."""
