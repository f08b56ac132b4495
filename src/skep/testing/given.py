"""A job for handlers that a test calls itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import Token
from typing import Any, Self

from skep.core.codec import decode, encode
from skep.core.ids import new_ids
from skep.core.job import Known
from skep.core.options import JobOptions
from skep.core.record import Record
from skep.core.terms import Priority
from skep.worker.context import CurrentJob, Run, current


class _GivenRun:
    """What a given job is a view of."""

    def __init__(self, queue: str, id: str | None, head: Record, known: Known, state: Any) -> None:
        self.queue = queue
        self.id = id or new_ids(1)[0]
        self.worker = "test"
        self.head = head
        self.data = head.data
        self.known = known
        self.started = head.created
        self.state = state
        self.stopping = False
        self.progress: list[Any] = []
        self.lines: list[tuple[str, str]] = []
        self._callbacks: list[Callable[[], object]] = []
        self.job: CurrentJob

    def tell_progress(self, text: bytes) -> None:
        self.progress.append(decode(text))

    def tell_line(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def when_stopped(self, callback: Callable[[], object]) -> None:
        if self.stopping:
            callback()
        else:
            self._callbacks.append(callback)

    def stop(self) -> None:
        self.stopping = True
        while self._callbacks:
            self._callbacks.pop(0)()


class GivenJob(CurrentJob):
    """A job that no queue has, as its handler sees it, and what the handler said to it. `job(...)` makes one."""

    __slots__ = ("_given", "_tokens")

    def __init__(self, run: _GivenRun) -> None:
        super().__init__(run)
        run.job = self
        self._given = run
        self._tokens: list[Token[Run]] = []

    @property
    def progress(self) -> list[Any]:
        """All that was reported, the newest last."""
        return self._given.progress

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Level and text of all that was logged."""
        return self._given.lines

    def cancel(self) -> None:
        """Asks the run to end: `cancelled` is True, and the `on_cancel` callbacks are called."""
        self._given.stop()

    def __enter__(self) -> Self:
        self._tokens.append(current.set(self._given))
        return self

    def __exit__(self, *_: object) -> None:
        current.reset(self._tokens.pop())


def job(
    data: Any = None,
    *,
    id: str | None = None,
    queue: str = "test",
    task: str | None = None,
    name: str | None = None,
    meta: Any = None,
    priority: Priority | int | str = "normal",
    attempts: int = 0,
    failures: int = 0,
    stalls: int = 0,
    timeouts: int = 0,
    state: Any = None,
) -> GivenJob:
    """A job to call a handler with: `add(job({"x": 2}))`. Within `with job(...):` it is `skep.current_job()`.

    Its data goes through JSON, as a queue's does. `state`: what a lifespan would have given.
    """
    options = JobOptions(priority=priority, name=name, meta=meta).terms
    now = time.time_ns() // 1_000_000
    head = Record(now, now, 0, task or "", options, encode(data))
    known = Known(
        runs=max(attempts, failures + stalls), attempts=attempts, failures=failures, stalls=stalls, timeouts=timeouts
    )
    return GivenJob(_GivenRun(queue, id, head, known, state))
