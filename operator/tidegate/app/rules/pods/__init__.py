"""What an application's pods show: how a driver ended, why executors are missing. No I/O."""
