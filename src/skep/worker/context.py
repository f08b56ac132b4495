"""What the code of a job may see and say while it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from skep.core.codec import decode, encode
from skep.core.job import Known
from skep.core.record import Record
from skep.errors import InvalidOption, SkepError

MOST_PROGRESS = 16 << 10
MOST_LINE = 8 << 10
LEVELS = ("debug", "info", "warning", "error", "critical")

current: ContextVar[Run] = ContextVar("skep_current_run")


class Run(Protocol):
    """What a `CurrentJob` is a view of: the attempt under way."""

    @property
    def job(self) -> CurrentJob:
        """The job, as its code sees it."""
        ...

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def queue(self) -> str:
        """The name of its queue."""
        ...

    @property
    def worker(self) -> str:
        """The name of the worker at this queue."""
        ...

    @property
    def head(self) -> Record:
        """What its record says, but for the data."""
        ...

    @property
    def data(self) -> bytes:
        """Its data, as JSON."""
        ...

    @property
    def known(self) -> Known:
        """What its life has been through before this run."""
        ...

    @property
    def started(self) -> int:
        """When the run began: milliseconds of the server's clock."""
        ...

    @property
    def state(self) -> Any:
        """What the lifespan gave."""
        ...

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        ...

    def tell_progress(self, text: bytes) -> None:
        """Reports its progress, and begins its timeout anew."""
        ...

    def tell_line(self, level: str, text: str) -> None:
        """Writes a line of its log."""
        ...

    def when_stopped(self, callback: Callable[[], object]) -> None:
        """Calls this when it is asked to end."""
        ...


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


class CurrentJob:
    """The job that runs now, as its handler sees it: the handler's parameter, or `skep.current_job()`.

    What it reports leaves with the worker's next batch, in order, and before the job's ending.
    """

    __slots__ = ("_data", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._data: Any = msgspec.UNSET

    def __repr__(self) -> str:
        task = f" task={self.task!r}" if self.task else ""
        return f"<CurrentJob {self.id!r} of {self.queue!r}{task} run={self.run}>"

    @property
    def id(self) -> str:
        """Its id."""
        return self._run.id

    @property
    def life(self) -> int:
        """The life of the id that this run belongs to."""
        return self._run.head.life

    @property
    def run(self) -> int:
        """The number of this run within its life, from 1."""
        return self._run.known.runs + 1

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._run.queue

    @property
    def worker(self) -> str:
        """The name of the worker that runs it."""
        return self._run.worker

    @property
    def task(self) -> str | None:
        """The name of its task; None for a job of the queue's handler."""
        return self._run.head.task or None

    @property
    def name(self) -> str | None:
        """Its label."""
        return self._run.head.options.get("name")

    @property
    def data(self) -> Any:
        """Its data: JSON, decoded."""
        if self._data is msgspec.UNSET:
            self._data = decode(self._run.data)
        return self._data

    @property
    def meta(self) -> Any:
        """The small JSON that was noted beside the data."""
        text = self._run.head.options.get("meta")
        return None if not text else decode(text.encode())

    @property
    def priority(self) -> int:
        """10 (highest) to 60 (lowest)."""
        return int(self._run.head.options.get("priority") or 40)

    @property
    def attempts(self) -> int:
        """Runs of this life that have ended in success, failure, timeout or stall, this one not included."""
        return self._run.known.attempts

    @property
    def failures(self) -> int:
        """Runs of this life that have failed."""
        return self._run.known.failures

    @property
    def stalls(self) -> int:
        """Runs of this life whose worker died or fell silent."""
        return self._run.known.stalls

    @property
    def timeouts(self) -> int:
        """Failures that were timeouts."""
        return self._run.known.timeouts

    @property
    def created_at(self) -> datetime:
        """When this life began."""
        return _moment(self._run.head.created)

    @property
    def run_at(self) -> datetime:
        """When it was due."""
        return _moment(self._run.head.due)

    @property
    def started_at(self) -> datetime:
        """When this run began."""
        return _moment(self._run.started)

    @property
    def state(self) -> Any:
        """What the lifespan of the worker, or of the queue, gave: pools, clients and the like."""
        return self._run.state

    @property
    def cancelled(self) -> bool:
        """Whether this run was asked to end: cancelled, out of time, or its worker stops or has lost its lease."""
        return self._run.stopping

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Calls this once when the run is asked to end; at once if it was already."""
        self._run.when_stopped(callback)

    def report_progress(self, value: Any, message: str | None = None) -> None:
        """Tells how far it is: any JSON; a message goes into the job's log. The run's timeout begins anew."""
        self._run.tell_progress(encode(value, "progress", MOST_PROGRESS))
        if message is not None:
            self.log(message)

    def log(self, text: str, level: str = "info") -> None:
        """Adds a line to the job's log, which is kept with it: at most 8 KiB of it."""
        if level not in LEVELS:
            raise InvalidOption("level", level, f"one of {', '.join(LEVELS)}")
        line = str(text).encode(errors="backslashreplace")
        if len(line) > MOST_LINE:
            line = line[: MOST_LINE - 3] + b"..."
        self._run.tell_line(level, line.decode(errors="ignore"))


def current_job() -> CurrentJob:
    """The job that this code runs for, also in functions that its handler calls."""
    try:
        return current.get().job
    except LookupError:
        raise SkepError("no job runs here: current_job() is for code that a handler calls") from None
