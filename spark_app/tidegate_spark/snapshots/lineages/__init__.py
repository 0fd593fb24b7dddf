"""What stands beside lineages: what each was filled with, what an upgrade or a rehearsal left, what is being made."""
