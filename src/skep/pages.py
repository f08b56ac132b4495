"""Lists of jobs that move: pages by a cursor that cannot skip what stays put."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from skep import views
from skep.core.call import Flow
from skep.core.job import NOTHING, JobRecord
from skep.core.keys import Keys
from skep.core.limits import check_label
from skep.core.states import ALIASES, JobState
from skep.errors import InvalidOption, UnknownStatus

J = TypeVar("J")

MOST_IN_A_TRIP = 100
PAGE = 100
MOST_IN_A_PAGE = 10_000


class Page(list[J]):
    """Some jobs. `next_cursor` gives the next page; None: this is the last one."""

    def __init__(self, jobs: Sequence[J], next_cursor: str | None) -> None:
        super().__init__(jobs)
        self.next_cursor = next_cursor


@dataclass(frozen=True, slots=True)
class Where:
    """Which jobs are meant: all that have this status, this label and this task, as far as they are named."""

    status: JobState | None = None
    name: str | None = None
    task: str | None = None

    @classmethod
    def of(cls, status: str | None, name: str | None, task: str | None) -> Where:
        """As users say it."""
        return cls(
            None if status is None else _status(status),
            None if name is None else check_label("name", name),
            None if task is None else check_label("task", task),
        )

    @property
    def place(self) -> str:
        """Where the server lists them, and others beside them."""
        if self.name is not None:
            return f"name:{self.name}"
        # Those that wait stand in lists by rank, which move: they are found among all.
        return "jobs" if self.status in (None, JobState.WAITING) else str(self.status)

    def picks(self, found: JobRecord | None) -> JobRecord | None:
        """The job that is meant at this id, if one is."""
        if found is not None and self.status is JobState.BLOCKED:
            found = twin_of(found)
        if found is None or (self.status is not None and found.status is not self.status):
            return None
        if self.name is not None and found.head.options.get("name") != self.name:
            return None
        return found if self.task is None or found.head.task == self.task else None


def _status(status: object) -> JobState:
    word = ALIASES.get(status, status) if isinstance(status, str) else ""
    if word not in set(JobState):
        raise UnknownStatus("status", status, f"one of {', '.join(JobState)}")
    return JobState(word)


def twin_of(record: JobRecord) -> JobRecord | None:
    """The second job of an id that runs."""
    if record.twin is None:
        return None
    return replace(
        record,
        head=record.twin,
        status=JobState.BLOCKED,
        known=NOTHING,
        lease=None,
        error=None,
        progress=None,
        stop=False,
        twin=None,
    )


def look(keys: Keys, ids: Sequence[str]) -> Flow[list[JobRecord | None]]:
    """All that is known of any number of ids, in their order."""
    found: list[JobRecord | None] = []
    while len(found) < len(ids):
        found += yield views.look(keys, ids[len(found) : len(found) + MOST_IN_A_TRIP])
    return found


def page(keys: Keys, where: Where, limit: object, cursor: str | None) -> Flow[tuple[list[JobRecord], str | None]]:
    """So many jobs, and the cursor for the next ones."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MOST_IN_A_PAGE:
        raise InvalidOption("limit", limit, f"a whole number from 1 to {MOST_IN_A_PAGE:,}")
    at = _Cursor() if cursor is None else _Cursor.read(cursor)
    jobs: list[JobRecord] = []
    while len(jobs) < limit and not at.is_end:
        if not at.rest:
            at.scan, at.rest = yield views.page(keys, where.place, at.scan or "0", min(limit, MOST_IN_A_TRIP))
            continue
        ids = at.rest[: min(limit - len(jobs), MOST_IN_A_TRIP)]
        found = yield views.look(keys, ids)
        at.rest = at.rest[len(found) :]
        jobs += filter(None, map(where.picks, found))
    return jobs, None if at.is_end else at.written()


@dataclass(slots=True)
class _Cursor:
    """Where a list goes on: the server's cursor, and ids that it gave beyond what was asked for.

    The server gives a small table whole. No number could say which of it was told, since it moves: the rest is kept.
    """

    scan: str = ""
    rest: Sequence[str] = ()

    @property
    def is_end(self) -> bool:
        return self.scan == "0" and not self.rest

    def written(self) -> str:
        return msgspec.json.encode([self.scan, *self.rest]).decode()

    @classmethod
    def read(cls, cursor: str) -> _Cursor:
        try:
            scan, *rest = msgspec.json.decode(cursor, type=list[str])
        except (msgspec.MsgspecError, ValueError, TypeError):
            raise InvalidOption("cursor", cursor, "the `next_cursor` of a page") from None
        return cls(scan, rest)


def get(keys: Keys, ids: str | Iterable[str]) -> Flow[Any]:
    """The job of an id, or those of several in their order; None for an unknown one."""
    if isinstance(ids, str):
        [found] = yield views.look(keys, [check_label("id", ids)])
        return found
    return (yield from look(keys, [check_label("id", id) for id in ids]))


def handles(found: JobRecord | list[JobRecord | None] | None, make: Callable[[JobRecord], J]) -> Any:
    """What `get` found, as handles."""
    if isinstance(found, list):
        return [None if each is None else make(each) for each in found]
    return None if found is None else make(found)


def has(keys: Keys, id: str | None, name: str | None) -> Flow[bool]:
    """Whether there is a job of this id, or one with this label."""
    if id is not None:
        [found] = yield views.look(keys, [check_label("id", id)])
        return found is not None and (name is None or found.head.options.get("name") == name)
    if name is None:
        raise InvalidOption("id", id, "an id, or name=... in its place")
    _, ids = yield views.page(keys, Where(name=check_label("name", name)).place, "0", 1)
    return bool(ids)
