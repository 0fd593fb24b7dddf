"""A Spark checkpoint, read: which files make up one batch. Pure."""
