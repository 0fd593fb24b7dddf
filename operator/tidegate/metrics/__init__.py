"""Prometheus figures of the operator's own life: reconciles, API requests, queue, phases. Figures of queries are the agents'."""
