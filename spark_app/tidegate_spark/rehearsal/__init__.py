"""A rehearsal: how long it runs, and what it keeps queries from doing.

Design: docs/design/rehearsal-and-forks.md.
"""
