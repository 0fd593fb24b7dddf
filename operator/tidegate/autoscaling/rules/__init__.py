"""What people ask of the autoscaler, and what the status keeps of it. No I/O."""
