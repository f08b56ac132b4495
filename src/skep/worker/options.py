"""The knobs of a worker, checked once, each with what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from skep.core.duration import to_ms
from skep.errors import InvalidOption
from skep.worker.middleware import Middleware

ExecutorName = Literal["thread", "process"]
EXECUTORS: tuple[str, ...] = get_args(ExecutorName)

MOST_SLOTS = 100_000
SHORTEST_LEASE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works. Durations are seconds or timedeltas.

    concurrency   so many runs at once, over all its queues; a slot costs a thread where handlers are `def`
    executor      where handlers run unless their task says otherwise: "thread" (those that are `def`), "process"
    max_jobs_per_child  after so many runs a child process is replaced; each start costs some tenths of a second
    max_rss       and when it uses more bytes of memory than this
    modules       what a child process imports before the module of a handler
    lease         so long after its last word a worker counts as dead, and its jobs wait again; it renews every
                  sixth of that, at most 5 s apart: a short lease finds a death sooner and costs more renewals
    grace         so long a stopping worker lets its runs go on before it hands them back
    burst         ends when nothing is waiting, active or retrying
    middleware    around each attempt, the first outermost; each costs a task's switch per job
    log_level     at which each attempt that ended is logged
    """

    concurrency: int = 10
    executor: str | None = None
    lease: float | timedelta = 30
    grace: float | timedelta = 25
    burst: bool = False
    middleware: Sequence[Middleware] = ()
    log_level: int = 10
    max_jobs_per_child: int | None = None
    max_rss: int | None = None
    modules: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _is_number_of_slots(self.concurrency):
            raise InvalidOption("concurrency", self.concurrency, f"a whole number from 1 to {MOST_SLOTS:,}")
        if self.executor is not None and self.executor not in EXECUTORS:
            raise InvalidOption("executor", self.executor, f"one of {', '.join(map(repr, EXECUTORS))}")
        for name in ("max_jobs_per_child", "max_rss"):
            most = getattr(self, name)
            if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
                raise InvalidOption(name, most, "a whole number of one or more, or None")
        if self.lease_ms < SHORTEST_LEASE:
            raise InvalidOption("lease", self.lease, "at least 1 second, such as 30")
        to_ms("grace", self.grace)

    @property
    def lease_ms(self) -> int:
        """The lease in milliseconds."""
        return to_ms("lease", self.lease, wanted="seconds or a timedelta of at least 1 second, such as 30")

    @property
    def grace_s(self) -> float:
        """The grace in seconds."""
        return to_ms("grace", self.grace) / 1000

    @property
    def renew_s(self) -> float:
        """Seconds between renewals."""
        return min(5.0, self.lease_ms / 6000)


def _is_number_of_slots(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_SLOTS
