"""Spark's JVM: started, ahead of its use where it was started before, and the session in it."""
