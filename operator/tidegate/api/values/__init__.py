"""Forms of single fields: quantities, times, JSON with bounds, and secrets in plain text. No I/O."""
