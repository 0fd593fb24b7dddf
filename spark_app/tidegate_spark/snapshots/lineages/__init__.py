"""The objects beside lineages: marks, notes of upgrades and rehearsals, and attempts of repartitions.

I/O by the repository (:mod:`tidegate_spark.snapshots.repository`).
"""
