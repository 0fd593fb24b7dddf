"""Values of single fields: quantities, times, bounded JSON, and secrets in plain text. No I/O."""
