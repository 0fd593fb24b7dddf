"""What an application's pods say: how a driver ended, what keeps executors away. No I/O."""
