"""The types, handlers and accounts of control messages. I/O only in ``ack_store``."""
