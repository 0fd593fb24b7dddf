"""Observes Spark: progress, lag, stalls, failed queries."""
