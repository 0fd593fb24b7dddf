"""The table of rules, and what all rules share: actions, health, conditions, pauses. No I/O."""
