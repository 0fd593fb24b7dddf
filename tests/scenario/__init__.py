"""A world small enough to be simulated whole, in which the real operator runs through random schedules of misfortune."""
