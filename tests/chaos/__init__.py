"""Faults on a real cluster under load, and an account of every record afterwards: ``make chaos ARGS=--help``."""
