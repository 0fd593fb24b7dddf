"""What is known of the cluster: applications, pods, storage roots. Each slice keeps its own index beside it."""
