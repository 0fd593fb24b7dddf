"""An application that is to go: its last snapshot, its pods, its storage. No I/O."""
