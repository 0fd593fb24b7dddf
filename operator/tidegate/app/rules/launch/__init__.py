"""The next driver: its epoch, its pod, its configuration. No I/O."""
