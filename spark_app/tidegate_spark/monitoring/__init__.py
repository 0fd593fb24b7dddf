"""What Spark does, in numbers: progress, lag, stalls, failed queries."""
