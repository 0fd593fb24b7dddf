"""The transports of channels: Kafka, RabbitMQ, and the inbox in the storage. Does I/O."""
