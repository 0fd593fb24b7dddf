"""The index of applications, pods and storage roots; each slice has an index of its own beside it."""
