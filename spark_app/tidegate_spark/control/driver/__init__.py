"""The control stream of one driver: what it does about messages, and what it answers its workers."""
