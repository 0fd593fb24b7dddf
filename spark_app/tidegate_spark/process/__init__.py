"""What every kind of pod needs: environment, signals, termination message, logs, redaction.

Each module says whether it does I/O.
"""
