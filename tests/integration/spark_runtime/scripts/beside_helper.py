"""Beside the program that imports it."""


def doubled(value: int) -> int:
    return 2 * value
