"""Pure knowledge of Spark: its configuration keys and the division of memory. No I/O."""
