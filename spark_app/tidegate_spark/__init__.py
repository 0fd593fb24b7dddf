"""The part of Tidegate that runs inside a Spark driver and its executors.

Importing this package does nothing: a script that does not ask for Tidegate does not pay for it.
"""
