"""Which modules of the product each act passes: an operator, a driver and an API server, all real, are traced."""
