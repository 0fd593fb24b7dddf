"""The operator's process around its controllers: kopf's handlers, logs, metrics."""
