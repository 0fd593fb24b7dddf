"""Rehearsals: how long one runs, and the suppression of its effects. Talks to the JVM.

Design: docs/design/rehearsal-and-forks.md.
"""
