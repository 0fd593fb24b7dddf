"""What a message may be, who handles it, and what came of it."""
