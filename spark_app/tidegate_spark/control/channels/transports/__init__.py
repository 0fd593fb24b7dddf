"""Where channels lead: a topic, a queue, or the inbox in the storage."""
