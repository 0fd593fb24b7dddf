"""Where queries write, and what of that a rollback, a fork or a rehearsal means for it."""
