"""`skep pause` and `skep resume`: whether workers take jobs of a queue, wherever they are."""

from __future__ import annotations

import argparse

from skep.cli import output
from skep.cli.common import add_common, queue_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What both commands take."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Does it, and tells whether it was a change."""
    with queue_of(args) as queue:
        changed = queue.pause() if args.verb == "pause" else queue.resume()
    state = "paused" if args.verb == "pause" else "running"
    if args.json:
        output.told({"queue": args.queue, "state": state, "changed": changed})
    elif changed:
        print(f"{output.shown(args.queue)}: {state}")
    else:
        output.complain(f"{args.queue!r} is {state} already")
    return 0 if changed else 1
