"""An application that is to run: what its driver does, and what of it is to be said. No I/O."""
