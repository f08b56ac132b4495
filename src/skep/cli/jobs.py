"""`skep jobs`: the jobs of a queue that match."""

from __future__ import annotations

import argparse

from skep.cli import output
from skep.cli.common import add_common, add_filters, filters, queue_of

HEADS = ("ID", "STATUS", "TASK", "NAME", "ATTEMPTS", "RUN AT", "ERROR")
LIMIT = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")
    add_filters(parser)
    parser.add_argument("--limit", metavar="N", type=_limit, default=LIMIT, help=f"so many of them ({LIMIT})")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Tells of them, and whether there are more."""
    with queue_of(args) as queue:
        found = list(queue.jobs(**filters(args), limit=args.limit + 1))
    told = found[: args.limit]
    if args.json:
        for job in told:
            output.told(job.to_dict())
    else:
        output.table(
            HEADS,
            (
                (job.id, job.status.value, job.task, job.name, job.attempts, job.run_at, job.error and job.error.type)
                for job in told
            ),
        )
    if len(found) > len(told):
        output.complain(f"there are more than these {args.limit:,}: see --limit and the filters")
    return 0


def _limit(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a whole number from 1 on")
    return number
