"""The control stream in the driver: built-in types, and answers to workers. Talks to Spark."""
