"""Executors: their number, their pods, and the process around each."""
