"""A module that spec.application.pyFiles lists: executors have it by that alone."""

NAME = "listed_rules"
