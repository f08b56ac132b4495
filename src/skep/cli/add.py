"""`skep add`: a job from the command line."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from typing import Any

from skep.cli import output
from skep.cli.common import add_common, queue_of
from skep.core.codec import decode
from skep.core.options import AddOptions
from skep.errors import SkepError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")
    parser.add_argument(
        "data",
        metavar="JSON",
        nargs="?",
        type=_json,
        help="the job's data, for a task its arguments by name; -: read it",
    )
    parser.add_argument("--task", metavar="T", help="who runs it (the queue's handler)")
    parser.add_argument("--id", metavar="ID", help="a name of your own (one is made)")
    parser.add_argument("--name", metavar="LABEL", help="a label to find it by")
    parser.add_argument("--meta", metavar="JSON", type=_json, help="small JSON beside the data")
    parser.add_argument("--priority", metavar="P", type=_priority, help="highest, high, medium, normal, low or lowest")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--delay", metavar="S", type=float, help="not before so many seconds from now")
    when.add_argument("--run-at", metavar="TIME", type=_instant, help="not before, such as 2030-01-31T09:00+01:00")
    parser.add_argument(
        "--expires", metavar="S", type=_seconds, help="cancel it if it has not begun in so many seconds"
    )
    parser.add_argument("--repeat", metavar="N", nargs="?", const=True, type=int, help="again after its end (for ever)")
    parser.add_argument("--every", metavar="S", type=float, help="of a repeated job: so long after each end (300)")
    parser.add_argument("--cron", metavar="LINE", help="at the times of a cron line, such as '0 9 * * mon-fri'")
    parser.add_argument("--tz", metavar="ZONE", help="of the cron line, such as Europe/Paris (UTC)")
    parser.add_argument("--retries", metavar="N", type=int, help="so many runs more when it fails")
    parser.add_argument("--max-stalls", metavar="N", type=int, help="so many deaths of its worker are forgiven")
    parser.add_argument("--timeout", metavar="S", type=float, help="so long a run may take")
    parser.add_argument("--keep", metavar="S", type=_keep, help="seconds for which it stays when it has ended, or ever")
    parser.add_argument("--max-logs", metavar="N", type=int, help="so many of its newest log lines are kept")
    parser.add_argument(
        "--on-conflict", choices=("update", "ignore", "raise"), help="what to do where its id is known (update)"
    )
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Adds it, and tells its id."""
    options: Any = {
        name: getattr(args, name) for name in AddOptions.__annotations__ if getattr(args, name, None) is not None
    }
    with queue_of(args) as queue:
        data = {} if args.data is None and args.task else args.data
        job = queue.add(data, **options)
    if args.json:
        output.told({"id": job.id, "life": job.life, "outcome": job.outcome})
    else:
        print(f"{job.outcome} {output.shown(job.id)}")
    return 0


def _json(text: str) -> Any:
    try:
        return decode((sys.stdin.read() if text == "-" else text).encode())
    except SkepError as error:
        raise argparse.ArgumentTypeError(output.escaped(str(error))) from None


def _priority(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _keep(text: str) -> bool | float:
    return True if text == "ever" else float(text)


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise argparse.ArgumentTypeError("say its zone too, such as 2030-01-31T09:00+01:00")
    return found


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))
