"""StreamingApps: launched, upgraded, stopped and deleted. Uses what the other slices decide."""
