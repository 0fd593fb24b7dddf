"""Whose fault something is, by what Spark, the JVM and stores say of it."""
