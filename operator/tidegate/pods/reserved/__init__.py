"""What a spec cannot say of pods, because Tidegate, Spark or Linux does. No I/O."""
