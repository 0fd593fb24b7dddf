"""Benchmarks: each measures side by side in one run and prints one line of JSON last."""
