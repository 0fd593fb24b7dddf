"""The HTTP server of all ports of the runtime, bounded in connections, threads, bytes and time.

One thread reads from all connections, and a handler gets only complete requests, so a slow client holds no thread.
Standard library only.
"""
