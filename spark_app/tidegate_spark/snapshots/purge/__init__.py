"""Deletes all that an application has in its storage, with respect for those who need its snapshots."""
