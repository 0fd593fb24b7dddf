"""Whose storage it is, and which process may write it: the claim (``app.json``) and the fence (``fence.json``)."""
