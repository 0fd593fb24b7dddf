"""Another version takes over, and is taken back if it fails: one record in the status, changed a step at a time."""
