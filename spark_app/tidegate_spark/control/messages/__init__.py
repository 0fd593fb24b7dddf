"""The types, handlers and accounts of control messages."""
