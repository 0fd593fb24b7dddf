"""What is known of a pod, whose it is, and what is wrong with it. No I/O."""
