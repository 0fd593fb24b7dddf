"""The HTTP server of all ports that the runtime opens: bounded in connections, threads, bytes and time.

Whoever reaches a pod's network can connect. So one thread reads from all connections at once, and a request comes to a
handler only when it is there as a whole: a client that is slow holds a few bytes for a few seconds, and no thread.
Standard library only, as the runtime is carried into images that bring nothing else.
"""
