"""Rules for an application that is to run: its driver, and what is reported of it. No I/O."""
