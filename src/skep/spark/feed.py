"""Events as rows: a slice of one queue's stream, by the numbers of its events, read exactly or not at all.

Plain Python: what Spark calls stands in `source.py`. The number of a slice's last event is known from the stream's last
entry, so that an offset costs one look, and what is missing from a slice is seen at once.
"""

# pyright: reportUnknownParameterType=false
# pyarrow has no types.
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from skep import views
from skep.core.codec import encode
from skep.core.events import RawEvent, read_entry
from skep.core.job import JobError, Lease, decode_error
from skep.core.keys import Keys
from skep.errors import EventsTrimmed, HistoryForked
from skep.store.sync import Store

# The state of a job's counts when nothing is told of them: it ran once, and succeeded.
ONCE = {"succeeded": 1}
TOLD = frozenset(
    (
        *("lease", "run", "status", "due", "was", "began", "next", "worker"),
        *("result", "error", "reason", "data", "left_out", "attempts", "failures", "stalls", "timeouts"),
    )
)


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of one queue with numbers above `after`, up to and including `end`: what one Spark task reads."""

    queue: str
    after: int
    end: int
    prefix: str = "skep"


def latest(store: Store, queue: str, prefix: str = "skep") -> int:
    """The number of the last event there is; 0 where there is none."""
    return store.send(views.feed(Keys(queue, prefix), after=0, count=1)).last


def whole(store: Store, queue: str, prefix: str = "skep", *, since: int = 0) -> Slice:
    """All events of a queue after that number; since 0: from the oldest that is kept."""
    found = store.send(views.feed(Keys(queue, prefix), after=0, count=1))
    if since == 0 and found.entries:
        first, _ = _stands_for(*found.entries[0])
        since = first - 1
    return Slice(queue, since, found.last, prefix)


def read(store: Store, part: Slice) -> Iterator[RawEvent]:
    """The events of a slice, in order, none missing: else it fails."""
    keys, at = Keys(part.queue, part.prefix), part.after
    while at < part.end:
        found = store.send(views.feed(keys, after=at))
        if not found.entries:
            raise HistoryForked(
                f"queue {part.queue!r}: events up to {part.end:,} were there, and the last is {found.last:,} now:"
                " the server lost what it had acknowledged"
            )
        for entry_id, fields in found.entries:
            first, events = _stands_for(entry_id, fields)
            if first > at + 1:
                raise EventsTrimmed(part.queue, at + 1, first - 1)
            at = int(entry_id.partition(b"-")[0])
            for event in events:
                if part.after < event.seq <= part.end:
                    yield event
            if at >= part.end:
                break


def _stands_for(entry_id: bytes, fields: list[bytes]) -> tuple[int, list[RawEvent]]:
    """The first number that an entry stands for, whether or not the event was left out, and its events."""
    events = list(read_entry(entry_id, fields))
    if len(fields) > 4 and fields[4] == b"from" and fields[5][:1].isdigit():
        return int(fields[5]), events
    return events[0].seq, events


def row(event: RawEvent, queue: str) -> dict[str, Any]:
    """An event as a row of the table `events`. Times are milliseconds."""
    head, details = event.head, event.details
    lease = Lease.read(details["lease"].encode()) if "lease" in details else None
    error = decode_error(details["error"].encode()) if details.get("error") else NO_ERROR
    options = head.options
    job = event.job or None
    return {
        "seq": event.seq,
        "at": event.at,
        "type": event.type,
        "queue": queue,
        "job": job,
        "life": event.life if job else None,
        "run": event.run if job else None,
        "task": head.task if job else None,
        "name": options.get("name") or None,
        "worker": lease.worker if lease else details.get("worker"),
        "by": event.by,
        "status": event.status if job else None,
        "due": details.get("was", details.get("due", head.due)) if job else None,
        "created": head.created if job else None,
        "began": details.get("began", lease.started if lease else None),
        "started": lease.started if lease else None,
        "attempts": details.get("attempts", ONCE.get(event.type, 0)) if job else None,
        "failures": details.get("failures", 0) if job else None,
        "stalls": details.get("stalls", 0) if job else None,
        "timeouts": details.get("timeouts", 0) if job else None,
        "reason": details.get("reason"),
        "data": details.get("data"),
        "result": details.get("result"),
        "meta": options.get("meta") or None,
        "error_type": error.type or None,
        "error_message": error.message if error is not NO_ERROR else None,
        "error_kind": error.kind if error is not NO_ERROR else None,
        "error_traceback": error.traceback or None,
        "next_run": details["due"] if "was" in details else details.get("next"),
        "write": options.get("write") or None,
        "left_out": bool(details.get("left_out")),
        "details": _rest(details),
    }


NO_ERROR = JobError()


def _rest(details: Mapping[str, Any]) -> str | None:
    rest = {name: value for name, value in details.items() if name not in TOLD}
    return encode(rest).decode() if rest else None


def batches(events: Iterator[RawEvent], queue: str, schema: pa.Schema, size: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Events as Arrow batches with the columns of this schema: what Spark takes from a source."""
    while some := [row(event, queue) for event in islice(events, size)]:
        yield pa.RecordBatch.from_arrays([_column(some, column) for column in schema], schema=schema)


def _column(rows: list[dict[str, Any]], column: pa.Field) -> pa.Array:
    values = [each[column.name] for each in rows]
    if not pa.types.is_timestamp(column.type):
        return pa.array(values, column.type)
    return pa.array([None if ms is None else ms * 1000 for ms in values], pa.int64()).cast(column.type)
