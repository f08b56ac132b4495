"""What a job tells of itself, the same for `Job` and `AsyncJob`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from skep.adding import AddedOne
from skep.core.codec import decode
from skep.core.job import JobError, JobRecord
from skep.core.keys import Keys
from skep.core.options import JobOptions
from skep.core.record import Record
from skep.core.retry import Backoff
from skep.core.states import JobState
from skep.core.terms import FROM_THE_RUN_ON, Priority
from skep.core.unset import UNSET
from skep.drafts import snapshot
from skep.handler import Registry
from skep.views import Ending
from skep.waiting import outcome

R_co = TypeVar("R_co", covariant=True)

# What the server calls the options of a job, and what users do; their times are seconds.
SECONDS = {"every", "timeout", "keep"}
NAMES = {"again": "repeat"}


@dataclass(frozen=True, slots=True)
class PreviousLife:
    """The last life of an id, in short; `error` is the type of what it failed with."""

    life: int
    status: JobState
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime
    error: str | None


@dataclass(frozen=True, slots=True)
class BlockedJob:
    """The second job of an id that runs: it goes on when the run's life ends."""

    life: int
    task: str | None
    data: Any
    created_at: datetime
    run_at: datetime


def instant(ms: int) -> datetime:
    """A time as users are given it."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def _maybe(ms: int | None) -> datetime | None:
    return None if ms is None else instant(ms)


class JobFields(Generic[R_co]):
    """A job as it stood when it was last asked for: by `get`, by the add that gave it, or by `refresh()`.

    What an add gives is known without asking the server again, its times by this machine's clock.
    """

    __slots__ = ("_ending", "_made", "_record", "_source", "id", "life", "outcome")

    id: str
    """Its name in the queue."""
    life: int
    """Which of the lives of its id it is."""
    outcome: str | None
    """What the add did that gave this job: added, updated, blocked or ignored."""

    def __init__(self, source: JobRecord | AddedOne) -> None:
        self._source = source
        self.id = source.id
        self._record: JobRecord | None = None
        self._ending: Ending | None = None
        if isinstance(source, JobRecord):
            self.life, self.outcome, self._record = source.head.life, None, source
        else:
            self.life, self.outcome = source.life, source.outcome
            self._made = time.time()

    @property
    def _keys(self) -> Keys:
        raise NotImplementedError

    @property
    def _registry(self) -> Registry:
        raise NotImplementedError

    @property
    def record(self) -> JobRecord:
        """All that is known of it, in the server's words."""
        if self._record is None:
            added = self._source
            assert not isinstance(added, JobRecord)  # noqa: S101 - for the type checkers: see __init__
            now = int(self._made * 1000)
            draft = added.template.draft(added.data, added.id)
            self._record = added.record or snapshot(self._keys.name, draft, added.life, added.outcome, now)
        return self._record

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._keys.name

    @property
    def task(self) -> str | None:
        """What selects its handler; None: the queue's own."""
        return self.record.head.task or None

    @property
    def name(self) -> str | None:
        """Its label."""
        return self.record.head.options.get("name") or None

    @property
    def data(self) -> Any:
        """What it was added with, as JSON gives it back."""
        return decode(self.record.head.data)

    @property
    def meta(self) -> Any:
        """What is noted beside the data."""
        meta = self.record.head.options.get("meta")
        return decode(meta.encode()) if meta else None

    @property
    def status(self) -> JobState:
        """Where it stands."""
        return self.record.status

    @property
    def reason(self) -> str | None:
        """Why it was cancelled or held."""
        return self.record.reason or None

    @property
    def priority(self) -> Priority:
        """Lower numbers go first."""
        return Priority(self.record.head.options.get("priority") or Priority.NORMAL)

    @property
    def attempts(self) -> int:
        """How many of its runs ended in success, failure, timeout or stall."""
        return self.record.known.attempts

    @property
    def failures(self) -> int:
        """How many of its runs failed, timeouts included."""
        return self.record.known.failures

    @property
    def stalls(self) -> int:
        """How often its worker died or fell silent."""
        return self.record.known.stalls

    @property
    def timeouts(self) -> int:
        """How many of its failures were timeouts."""
        return self.record.known.timeouts

    @property
    def progress(self) -> Any:
        """What its run reported last."""
        return None if self.record.progress is None else decode(self.record.progress)

    @property
    def error(self) -> JobError | None:
        """What it failed with, or its last run."""
        return self.record.error

    @property
    def previous(self) -> PreviousLife | None:
        """How the life of its id before this one ended."""
        last = self.record.known.previous
        if last is None:
            return None
        times = instant(last.created), instant(last.due), _maybe(last.began), instant(last.finished)
        return PreviousLife(last.life, JobState(last.status), *times, last.error)

    @property
    def blocked(self) -> BlockedJob | None:
        """The second job of its id, which waits for its run to end."""
        twin: Record | None = self.record.twin
        if twin is None:
            return None
        return BlockedJob(twin.life, twin.task or None, decode(twin.data), instant(twin.created), instant(twin.due))

    @property
    def created_at(self) -> datetime:
        """When this life began."""
        return instant(self.record.head.created)

    @property
    def run_at(self) -> datetime:
        """When it is or was due."""
        return instant(self.record.head.due)

    @property
    def started_at(self) -> datetime | None:
        """When its last run began."""
        lease = self.record.lease
        return instant(lease.started) if lease else _maybe(self.record.known.began)

    @property
    def finished_at(self) -> datetime | None:
        """When it ended."""
        return _maybe(self.record.finished)

    @property
    def expires_at(self) -> datetime | None:
        """By when its first run must have begun."""
        return _maybe(self.record.head.options.get("expires") or None)

    @property
    def worker(self) -> str | None:
        """Who runs it, or ran it last."""
        return self.record.lease.worker if self.record.lease else None

    @property
    def cancel_requested(self) -> bool:
        """Whether its run was asked to stop."""
        return self.record.stop

    @property
    def options(self) -> JobOptions:
        """What was said of the job itself; what its task and queue say is not in it."""
        told = {
            name: value
            for name, value in self.record.head.options.items()
            if name in OPTIONS and (value is not False or name in FROM_THE_RUN_ON)
        }
        return JobOptions.as_kept({NAMES.get(name, name): _said(name, value) for name, value in told.items()})

    def to_dict(self) -> dict[str, Any]:
        """All of it but the result, in values of JSON."""
        said = {name: getattr(self, name) for name in TOLD}
        options = self.options
        said["options"] = {name: getattr(options, name) for name in sorted(OPTION_FIELDS)}
        said["options"] = {name: value for name, value in said["options"].items() if value is not UNSET}
        plain: dict[str, Any] = msgspec.to_builtins(said, enc_hook=str)
        return plain

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue}/{self.id} life {self.life}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobFields):
            return NotImplemented
        return (self._keys, self.id, self.life) == (other._keys, other.id, other.life)

    def __hash__(self) -> int:
        return hash((self._keys, self.id, self.life))

    def _outcome(self, ending: Ending) -> Any:
        """Its result, as the return annotation of its task says, or the error that there is none."""
        handler = self._registry.find(self.record.head.task)
        read: Callable[[bytes], Any] = handler.read_result if handler is not None else decode
        return outcome((self.id, self.life), ending, read)

    def _now(self, record: JobRecord) -> None:
        if record.head.life != self.life:
            self._ending = None
        self._record, self.life = record, record.head.life


OPTION_FIELDS = {each.name for each in fields(JobOptions)}
OPTIONS = (OPTION_FIELDS - {"id", "task", "delay", "run_at", "on_conflict"}) | {"again"}
TOLD = (
    *("id", "life", "task", "name", "queue", "data", "meta", "status", "reason", "priority"),
    *("attempts", "failures", "stalls", "timeouts", "progress", "error", "previous", "blocked"),
    *("created_at", "run_at", "started_at", "finished_at", "expires_at", "worker", "cancel_requested", "outcome"),
)


def _said(name: str, value: Any) -> Any:
    """An option as it may be said again."""
    if name == "backoff":
        return Backoff.read(value)
    if name == "meta":
        return decode(value.encode())
    if name == "expires":
        return instant(value)
    if isinstance(value, bool):
        return value or None
    return value / 1000 if name in SECONDS and value else value
