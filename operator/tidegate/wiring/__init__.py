"""The operator's process around its controllers: kopf's frame, logs, metrics. Does I/O."""
