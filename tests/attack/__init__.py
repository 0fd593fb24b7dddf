"""Snapshots under attack: Spark cleans up as fast as it can while they are taken, and each is compared afterwards."""
