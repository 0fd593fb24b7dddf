"""Resources of one kind: watched, indexed by key and by application, and reported if they cannot be decoded.

StreamSnapshots and ControlMessages; StreamingApps and pods have watches of their own. Watching and reporting do I/O.
"""
