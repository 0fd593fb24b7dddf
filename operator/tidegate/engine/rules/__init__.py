"""How rules are read, and what all of them can say: actions, health, conditions, pauses. No I/O."""
