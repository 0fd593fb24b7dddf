"""What decides which tests run and what a run has to show: promises, changed tests, tests of tools, noise."""
