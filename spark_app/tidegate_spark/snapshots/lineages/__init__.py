"""The objects beside lineages: marks, notes of upgrades and rehearsals, and attempts of repartitions."""
