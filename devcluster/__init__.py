"""The development cluster: a real Kubernetes, S3 server and Kafka broker on one Linux machine."""
