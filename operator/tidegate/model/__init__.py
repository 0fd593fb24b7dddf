"""The resources as values: frozen structures decoded from, and encoded to, what the API server stores. No I/O."""
