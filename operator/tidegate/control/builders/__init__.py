"""Builds the resources that follow from messages, as dictionaries. No I/O."""
