"""Builds the objects of an application's access as dictionaries. No I/O."""
