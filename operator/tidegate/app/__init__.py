"""The StreamingApp controller: launches, upgrades, stops and deletes applications.

``rules`` and ``builders`` are pure; ``reconcile``, ``act`` and ``dry_runs`` do I/O.
"""
