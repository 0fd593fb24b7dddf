"""Deletes an application's storage, unless others need its snapshots. Does I/O."""
