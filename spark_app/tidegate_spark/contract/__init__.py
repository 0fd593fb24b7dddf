"""What operator and runtime agree on: protocols, forms, reasons, places of objects. Standard library only, no I/O.

The one room of the runtime that the operator may enter.
"""
