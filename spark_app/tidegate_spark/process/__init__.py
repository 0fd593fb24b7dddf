"""What every kind of pod needs: environment, signals, termination message, logs, redaction."""
