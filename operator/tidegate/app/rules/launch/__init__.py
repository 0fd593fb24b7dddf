"""Rules for the next driver: epoch, pod, configuration. No I/O."""
