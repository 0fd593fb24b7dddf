"""What every tier shares: property tests without deadlines, because a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")
