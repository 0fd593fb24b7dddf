"""Prevents a query from reading its state with other columns than it was written with."""
