"""What users are told of a change: an event of the stream, with all that it carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from skep.core.codec import decode
from skep.core.events import RawEvent
from skep.core.job import Lease, read_error
from skep.core.states import JobState
from skep.jobfields import instant

COUNTS = ("attempts", "failures", "stalls", "timeouts")
# The ends of runs and lives tell how often it was tried; of a run that succeeded at once that is left out.
ONCE = {"succeeded": 1}
ENDS = frozenset(("succeeded", "retrying", "failed", "stalled", "returned", "cancelled"))
TIMES = frozenset(("began", "next", "was"))
# What is told beside the details.
ABOVE = frozenset(("lease", "run", "status", "due", "worker"))


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a queue.

    seq      its number: all events of a queue are numbered from 1 without a gap
    at       when it happened, by the server's clock
    type     added, started, succeeded and so on
    queue    the name of the queue
    by       who did it: a worker, or host and process of a client
    job      the id of the job it happened to; None: it happened to the queue, and the next ones are None too
    life     which of the lives of that id
    run      which of the runs of that life, from 1; None: it belongs to none
    task, name   of the job
    status, due  of the job, after it
    worker   who runs the job, or ran it; who joined or left
    details  what else there is to tell, by its kind: `data`, `result`, `error`, `reason`, `value` (of progress, or the
             text of a log line) with `level`, `created`, `began`, `started`, `next` (of a series), `attempts` and the
             other counts, `settings`; `left_out`: data or result was too large, or is kept out of events
    """

    seq: int
    at: datetime
    type: str
    queue: str
    by: str
    job: str | None = None
    life: int | None = None
    run: int | None = None
    task: str | None = None
    name: str | None = None
    status: JobState | None = None
    due: datetime | None = None
    worker: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


def shown(raw: RawEvent, queue: str) -> Event:
    """An event of the stream as users see it."""
    head, told = raw.head, raw.details
    if not raw.job:
        details = {name: value for name, value in told.items() if name not in ABOVE}
        return Event(raw.seq, instant(raw.at), raw.type, queue, raw.by, worker=told.get("worker"), details=details)
    lease = Lease.read(told["lease"].encode()) if "lease" in told else None
    return Event(
        seq=raw.seq,
        at=instant(raw.at),
        type=raw.type,
        queue=queue,
        by=raw.by,
        job=raw.job,
        life=raw.life,
        run=raw.run or None,
        task=head.task or None,
        name=head.options.get("name") or None,
        status=JobState(raw.status),
        due=instant(told.get("due", head.due)),
        worker=lease.worker if lease else None,
        details=_details(raw, lease),
    )


def _details(raw: RawEvent, lease: Lease | None) -> dict[str, Any]:
    details: dict[str, Any] = {"created": instant(raw.head.created)}
    if lease:
        details["started"] = instant(lease.started)
    if raw.type in ENDS:
        details |= dict.fromkeys(COUNTS, 0) | {"attempts": ONCE.get(raw.type, 0)}
    if raw.head.options.get("meta"):
        details["meta"] = decode(raw.head.options["meta"].encode())
    for name, value in raw.details.items():
        if name not in ABOVE:
            details[name] = _detail(raw.type, name, value)
    return details


def _detail(kind: str, name: str, value: Any) -> Any:
    if name in TIMES:
        return instant(value)
    if name in ("data", "result") or (name == "value" and kind == "progress"):
        return decode(value.encode())
    return read_error(value.encode()) if name == "error" else value
