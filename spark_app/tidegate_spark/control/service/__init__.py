"""The message service: takes messages, logs them, and reports their results. I/O by the log."""
