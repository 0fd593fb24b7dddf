"""The demo: real temperatures replayed through Kafka into an application that Tidegate runs on a real Kubernetes.

``python -m devcluster.demo`` is the whole of it; :mod:`~devcluster.demo.replay` and :mod:`~devcluster.demo.compare` are
useful on their own.
"""
