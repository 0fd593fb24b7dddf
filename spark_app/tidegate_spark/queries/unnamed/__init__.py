"""Names for queries that the script leaves unnamed, by their ``checkpointLocation`` and the notes of their lineage.

``naming`` decides, without I/O; ``registry`` reads and writes the notes; ``script_text`` reads the script.
"""
