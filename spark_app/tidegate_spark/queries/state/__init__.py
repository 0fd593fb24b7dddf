"""Keeps a query from reading its state for something else than it is."""
