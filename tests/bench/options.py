"""The command line that every bench has: its name, what it does, and the default of each option in its help. Pure."""

import argparse


def bench_options(bench: str, description: str | None, *, on_cluster: bool = False) -> argparse.ArgumentParser:
    """Return the parser of a bench's arguments; ``on_cluster``: with the development cluster that it runs on."""
    parser = argparse.ArgumentParser(
        prog=f"make bench NAME={bench} ARGS=…",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    if on_cluster:
        parser.add_argument("--cluster", default=bench, help="development cluster; taken down, unless it runs already")
    return parser
