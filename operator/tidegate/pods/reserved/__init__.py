"""What a spec cannot set on pods, because Tidegate, Spark or Linux does not allow it. No I/O."""
