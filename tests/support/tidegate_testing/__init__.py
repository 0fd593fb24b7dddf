"""What integration and e2e tests share: kubectl, waiting with a reason, worlds on a cluster."""
