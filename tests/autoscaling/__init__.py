"""A simulated application whose executors are scaled by our rule, the HPA's and Spark's, on the same traces."""
