"""The status of an application, and the bounds of any status. No I/O."""
