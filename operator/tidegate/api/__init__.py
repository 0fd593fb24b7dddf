"""The three kinds of resources as values: decoded from, and encoded to, what the API server stores. No I/O."""
