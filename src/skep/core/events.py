"""Events: what every change leaves behind, and how an entry of the stream is read.

An entry stands for all events of one call. Its id is `<number of its last event>-0`, and its fields are

    at <ms> by <who>  [from <number> numbers <packed list>]  <job id> <body>  <job id> <body> ...

so that the first event has the number `last - count + 1`. Where the queue leaves events out (`history="endings"`),
`from` is the first number that the entry stands for, and `numbers` are those of the events in it.

A body is, for a job that was added plainly, its record (`core/record.py`); else one letter for the type, the head of
the record, and a packed map of details. Events of the whole queue have an empty id and no head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skep.core import record

TYPES: dict[int, str] = {
    ord(letter): name
    for letter, name in {
        "a": "added",
        "u": "updated",
        "b": "blocked",
        "n": "unblocked",
        "m": "merged",
        "s": "started",
        "p": "progress",
        "l": "log",
        "y": "succeeded",
        "r": "retrying",
        "f": "failed",
        "t": "stalled",
        "g": "returned",
        "c": "cancelled",
        "h": "held",
        "e": "released",
        "o": "promoted",
        "v": "revived",
        "i": "repeated",
        "x": "removed",
        "d": "redacted",
        "z": "paused",
        "w": "resumed",
        "k": "configured",
        "j": "trimmed",
        "q": "dropped",
        "1": "counted",
        "2": "joined",
        "3": "left",
        "4": "fenced",
    }.items()
}
EMPTY_HEAD = record.Record(created=0, due=0)

# The state after an event, where its type implies it.
IMPLIED = {
    "blocked": "blocked",
    "started": "active",
    "progress": "active",
    "log": "active",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One event as the stream holds it: its head and its details, nothing worked out yet."""

    seq: int
    at: int
    by: str
    type: str
    job: str
    head: record.Record
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def life(self) -> int:
        """The life it belongs to."""
        return self.head.life

    @property
    def run(self) -> int:
        """The run it belongs to; 0: none."""
        if "run" in self.details:
            return int(self.details["run"])
        return 1 if "lease" in self.details else 0

    @property
    def status(self) -> str:
        """The job's status after it."""
        told = self.details.get("status") or IMPLIED.get(self.type)
        if told:
            return str(told)
        return "scheduled" if self.head.due > self.at else "waiting"


def _is_gappy(fields: Sequence[bytes]) -> bool:
    # A job may be called "from": then a body stands behind its id, which never begins with a digit.
    return len(fields) > 4 and fields[4] == b"from" and fields[5][:1].isdigit()


def first_number(entry_id: bytes, fields: Sequence[bytes]) -> int:
    """The first number that an entry stands for, whether or not its event was left out."""
    if _is_gappy(fields):
        return int(fields[5])
    return int(entry_id.partition(b"-")[0]) - (len(fields) - 4) // 2 + 1


def read_entry(entry_id: bytes, fields: Sequence[bytes]) -> Iterator[RawEvent]:
    """The events of one entry, in order. `fields` is the flat list of field names and values."""
    last = int(entry_id.partition(b"-")[0])
    at, by, first = int(fields[1]), fields[3].decode(), 4
    if _is_gappy(fields):
        numbers: Sequence[int] = record.unpack(fields[7])
        first = 8
    else:
        numbers = range(last - (len(fields) - first) // 2 + 1, last + 1)
    for number, place in zip(numbers, range(first, len(fields), 2), strict=True):
        yield _event(number, at, by, fields[place].decode(), fields[place + 1])


def _event(seq: int, at: int, by: str, job: str, body: bytes) -> RawEvent:
    if job and record.is_known(body):
        head, end = record.read_head(body)
        return RawEvent(seq, at, by, "added", job, head, {"data": body[end:].decode()})
    kind, rest = TYPES[body[0]], body[1:]
    head, end = record.read_head(rest) if job else (EMPTY_HEAD, 0)
    return RawEvent(seq, at, by, kind, job, head, record.unpack(rest[end:]) if len(rest) > end else {})
