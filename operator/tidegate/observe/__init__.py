"""Gathers what is known about one application into a frozen Observation, and writes nothing."""
