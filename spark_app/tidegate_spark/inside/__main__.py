"""``python3 -m tidegate_spark.inside``: asks a driver's agent about its application's state. Does I/O.

In the driver's pod it finds agent and token by itself; elsewhere both are arguments. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from tidegate_spark.contract.protocol import AGENT_TOKEN_FILE, COMMAND_PORT
from tidegate_spark.inspect import messages
from tidegate_spark.inspect.answers import as_text, parsed
from tidegate_spark.inspect.questions import ALL, CLOSED, MOST_ROWS, MOST_SECONDS, OPEN, USUAL_ROWS, USUAL_SECONDS

TOKEN_VARIABLE = "TIDEGATE_TOKEN"  # noqa: S105 - a name, not a token
LEEWAY_SECONDS = 15
_PARAMETERS = ("name", "key", "filter", "limit", "rows", "which", "seconds")
EXAMPLES = """examples, in the driver's pod ("kubectl exec APP-driver -- python3 -m tidegate_spark.inside …"):
  state                                    all operators with their rows and bytes
  state main                               what the operators of query main keep
  state main 0 --key to                    the state of one key
  state main 0 --filter 'value.count>=10'  the rows that fulfil a condition
  state main 0 --count                     how many rows there are
  windows main                             open windows with what is in them, and the watermark
  sources                                  offsets and lag of every query

from elsewhere, with "kubectl port-forward pod/APP-driver 8091":
  --agent http://127.0.0.1:8091 and the token of the launch, from the Secret that the pod mounts as the volume
  tidegate-agent, in the variable TIDEGATE_TOKEN
"""


def parser() -> argparse.ArgumentParser:
    """Return what understands the command line."""
    made = argparse.ArgumentParser(
        prog="python3 -m tidegate_spark.inside",
        description=messages.DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--agent", default=f"http://127.0.0.1:{COMMAND_PORT}", help="address (default: %(default)s)")
    made.add_argument("--token-file", default=AGENT_TOKEN_FILE, help="file with the token (default: %(default)s)")
    kinds = made.add_subparsers(dest="kind", required=True, metavar="state | windows | sources")
    state = kinds.add_parser("state", help="operators, or rows of an operator's state")
    state.add_argument("query", nargs="?", help="name of a query; without it all are listed")
    state.add_argument("operator", nargs="?", type=int, help="number of an operator, as it is listed: its rows")
    state.add_argument("--key", help='value of the key, or {"column": value} of one with several columns')
    state.add_argument("--count", action="store_true", help="how many rows, not which")
    windows = kinds.add_parser("windows", help="windows with what is in them, and the watermark")
    windows.add_argument("query", help="name of a query")
    windows.add_argument("operator", nargs="?", type=int, help="number of an operator; without it all with windows")
    windows.add_argument("--which", choices=(OPEN, CLOSED, ALL), help=f"default: {OPEN}")
    windows.add_argument("--rows", type=int, help="rows of each window, at most")
    for each in (state, windows):
        each.add_argument("--name", help="state variable, or side of a join (left, right)")
        each.add_argument("--filter", help="conditions joined by and: value.count>=10 and key.word='to'")
        each.add_argument(
            "--limit", type=int, help=f"rows, or windows, at most (default {USUAL_ROWS}, most {MOST_ROWS})"
        )
        each.add_argument("--seconds", type=int, help=f"at most so many (default {USUAL_SECONDS}, most {MOST_SECONDS})")
    sources = kinds.add_parser("sources", help="offsets and lag")
    sources.add_argument("query", nargs="?", help="name of a query; without it all")
    return made


def path_of(given: argparse.Namespace) -> str:
    """Return path and parameters of the request; pure."""
    names = [given.kind, given.query, None if given.kind == "sources" else given.operator]
    path = "/v1/" + "/".join(quote(str(name), safe="") for name in names if name is not None)
    found = {name: getattr(given, name, None) for name in _PARAMETERS}
    values = {name: str(value) for name, value in found.items() if value is not None}
    if getattr(given, "count", False):
        values["count"] = "true"
    return f"{path}?{urlencode(values)}" if values else path


def main(arguments: Sequence[str]) -> int:
    """Ask, and print the answer as JSON; return 0, or 1 if there is none."""
    given = parser().parse_args(arguments)
    try:
        token = os.environ.get(TOKEN_VARIABLE) or Path(given.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        return _fail(f"no token: {error}; set {TOKEN_VARIABLE}, or name its file with --token-file")
    if not given.agent.startswith(("http://", "https://")):
        return _fail(f"--agent: {given.agent!r} is no http:// address")
    url = given.agent.rstrip("/") + path_of(given)
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - checked above
    # Not through a proxy: the agent is at an address of the pod's, or behind a port-forward.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    wait = (getattr(given, "seconds", None) or USUAL_SECONDS) + LEEWAY_SECONDS
    try:
        with opener.open(request, timeout=wait) as answer:
            body = parsed(answer.read())
    except urllib.error.HTTPError as error:
        return _fail(f"HTTP {error.code}: {_words_in(error.read())}")
    except (OSError, ValueError) as error:
        return _fail(f"{given.agent} does not answer: {error}")
    sys.stdout.write(as_text(body, indent=2) + "\n")
    return 0


def _words_in(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:1000]


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
