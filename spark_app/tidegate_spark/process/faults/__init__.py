"""Classifies faults by what Spark, the JVM and stores report. Asks the JVM, else no I/O."""
