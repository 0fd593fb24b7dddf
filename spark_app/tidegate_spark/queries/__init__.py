"""Each start of a query, and its stop at a batch boundary. Talks to the JVM."""
