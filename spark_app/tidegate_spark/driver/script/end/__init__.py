"""How a script ends: its last line, its threads, its exit calls, and what it leaves behind."""
