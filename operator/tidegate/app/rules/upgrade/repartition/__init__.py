"""An upgrade that changes the number of state partitions: deferred, checked, made by a pod. No I/O."""
