"""Raises at once, as a script with a typing error would."""

raise ValueError("the threshold must be a number, got 'warm'")
