"""A world that is simulated whole, in which the real operator runs through random schedules of misfortune."""
