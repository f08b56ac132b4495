"""What acts on jobs that are there: `skep cancel`, `retry`, `remove`, `hold`, `release`, `promote`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from skep.cli import output
from skep.cli.common import add_common, add_filters, filters, queue_of
from skep.errors import SkepError

ASKS = ("cancel", "retry", "remove")
"""What destroys or repeats: of all that match, it is asked first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What each of the commands takes."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")
    parser.add_argument("ids", metavar="ID", nargs="*", help="ids of jobs; or name all that match:")
    add_filters(parser)
    parser.add_argument("--older-than", metavar="S", type=float, help="only those that ended or began so long ago")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(wrong=parser.error)
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Does it, and tells what has changed."""
    which = filters(args)
    if bool(args.ids) == bool(which):
        args.wrong("name ids, or some of --status --name --task --older-than")
    if which and args.verb in ASKS and not args.yes:
        _ask(args, which)
    with queue_of(args) as queue:
        act: Any = getattr(queue, args.verb)
        if which:
            return _tell_count(args, act(**which))
        return _tell_ids(args, act(list(dict.fromkeys(args.ids))))


def _ask(args: argparse.Namespace, which: dict[str, Any]) -> None:
    said = ", ".join(f"{name}={value}" for name, value in which.items())
    if not sys.stdin.isatty():
        args.wrong("without a terminal, say --yes to mean all jobs that match")
    print(f"{args.verb} all jobs of {output.shown(args.queue)} with {output.escaped(said)}? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise SkepError("nothing is done")


def _tell_count(args: argparse.Namespace, count: int) -> int:
    if args.json:
        output.told({"changed": count})
    else:
        print(f"{args.verb}: {count:,} changed")
    return 0 if count else 1


def _tell_ids(args: argparse.Namespace, changed: list[str]) -> int:
    left = [id for id in dict.fromkeys(args.ids) if id not in changed]
    if args.json:
        output.told({"changed": changed, "unchanged": left})
    else:
        for id in changed:
            print(output.shown(id))
        for id in left:
            output.complain(f"{args.verb}: nothing to do for {id!r}: there is no such job, or not in such a state")
    return 1 if left else 0
