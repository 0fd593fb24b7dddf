"""Observes Spark: progress, lag, stalls, failed queries. Talks to the JVM."""
