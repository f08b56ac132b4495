"""`skep queues`: the queues of a server, and how many jobs stand where."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from skep.cli import output
from skep.cli.common import add_common
from skep.queue import Queue
from skep.roster import queues

COLUMNS = ("waiting", "scheduled", "retrying", "held", "active", "blocked", "succeeded", "failed", "cancelled")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Tells of all of them."""
    found = [_look(queue) for queue in queues(args.url)]
    if args.json:
        for each in found:
            output.told(each)
        return 0
    heads = ("queue", "workers", *COLUMNS, "paused")
    rows = [[each[head] if head != "paused" else "paused" if each[head] else "" for head in heads] for each in found]
    output.table([head.upper() for head in heads], rows)
    return 0


def _look(queue: Queue) -> dict[str, Any]:
    with queue:
        counts = asdict(queue.counts())
        return {"queue": queue.name, "workers": queue.stats().workers, **counts, "paused": queue.paused}
