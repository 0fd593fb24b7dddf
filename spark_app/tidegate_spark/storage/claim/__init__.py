"""The claim (``app.json``), whose storage it is, and the fence (``fence.json``), which process writes it."""
