"""The contract of operator and runtime: protocols, stored forms, reasons, object paths. Standard library only, no I/O.

It is the only package of the runtime that the operator imports.
"""
