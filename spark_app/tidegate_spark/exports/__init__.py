"""Portable state: a snapshot's state as plain files, and new queries that start from it.

``job`` writes an export, with Spark; ``start_from_export`` is what a script calls. The files and their manifest, which
is written last, lie below ``exports/<id>/`` of the application's place. Does I/O.

Design: docs/design/exports.md.
"""
