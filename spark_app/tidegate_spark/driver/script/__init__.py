"""The user's program: how it is run, how it comes to Spark, and how it ends."""
