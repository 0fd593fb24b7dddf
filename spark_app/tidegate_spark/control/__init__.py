"""The control stream: messages to a running application, in its own storage, and what a program makes of them.

Importing this package does nothing; what programs may ask for is loaded when they do.
"""
