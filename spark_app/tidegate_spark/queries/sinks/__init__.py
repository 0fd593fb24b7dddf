"""Where queries write, and what a rollback, a fork or a rehearsal means for it. Talks to the JVM and the store."""
