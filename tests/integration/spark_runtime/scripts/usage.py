"""Arguments are read first of all, by the standard library."""

import argparse

parser = argparse.ArgumentParser(prog="orders")
parser.add_argument("--topic", required=True)
parser.parse_args()
