"""The user's program: how it runs, gets Spark, and ends. Runs foreign code."""
