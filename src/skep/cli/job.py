"""`skep job`: all that is known of one job."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from skep.cli import output
from skep.cli.common import add_common, queue_of
from skep.core.codec import decode
from skep.job import Job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")
    parser.add_argument("id", metavar="ID", help="the job's id")
    parser.add_argument("--logs", action="store_true", help="its log lines, too")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Tells of it."""
    with queue_of(args) as queue:
        job = queue.get(args.id)
        if job is None:
            output.complain(f"queue {args.queue!r} has no job {args.id!r}: it never had, or keeps it no longer")
            return 1
        logs = list(job.logs()) if args.logs else []
    if args.json:
        lines = [{"at": line.at.isoformat(), "level": line.level, "text": line.text} for line in logs]
        output.told(job.to_dict() | {"result": _result(job)} | ({"logs": lines} if args.logs else {}))
        return 0
    _tell(job)
    for line in logs:
        print(f"  {output.shown(line.at)} {line.level:<8} {output.shown(line.text)}")
    return 0


def _tell(job: Job[Any]) -> None:
    said = job.to_dict()
    error = said.pop("error")
    if job.record.result is not None:
        said["result"] = _result(job)
    # What was not said, and what has not happened, is left out.
    times = {name: getattr(job, name) for name in said if isinstance(getattr(job, name, None), datetime)}
    output.lines({name: value for name, value in (said | times).items() if value not in (None, {}, "")})
    if error:
        print(f"error  {output.escaped(error['type'])}: {output.escaped(error['message'])} ({error['kind']})")
        for line in error["traceback"].splitlines():
            print(f"  {output.escaped(line)}")


def _result(job: Job[Any]) -> Any:
    return None if job.record.result is None else decode(job.record.result)
