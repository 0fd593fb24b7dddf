"""A small package whose __main__ is the app."""
