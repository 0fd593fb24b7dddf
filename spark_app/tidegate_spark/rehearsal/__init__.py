"""Rehearsals: how long one runs, and the suppression of its effects.

Design: docs/design/rehearsal-and-forks.md.
"""
