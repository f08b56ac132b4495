"""One attempt: from its claim to the outcome that its end leads to."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import threading
from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto
from time import monotonic
from typing import Any, Protocol

from skep import errors
from skep.core import record
from skep.core.duration import to_ms
from skep.core.job import NOTHING, JobError, Known, Lease, decode_known, encode_error
from skep.core.outcome import Cancelled, Failed, Outcome, Postponed, Retried, Returned, Stalled, Succeeded
from skep.core.record import Record
from skep.core.retry import Backoff, RetryPolicy, after_failure
from skep.lifecycle import Run
from skep.worker.context import CurrentJob
from skep.worker.failure import describe
from skep.worker.plan import Plan, Rules
from skep.worker.series import next_due_of

log = logging.getLogger("skep.worker")

_awaited: set[asyncio.Future[object]] = set()
"""Callbacks of `async def` under way: a loop alone does not keep its tasks."""


class Cause(Enum):
    """Why a run was told to end before its handler did."""

    TIMEOUT = auto()
    CANCEL = auto()
    RETURN = auto()  # the worker stops
    LOST = auto()  # it is no longer ours


class FailedInChild(Exception):
    """A run in a child process ended like this; the text is the traceback from there."""

    def __init__(self, trace: str, outcome: Outcome) -> None:
        super().__init__(trace)
        self.outcome = outcome


class Place(Protocol):
    """Where an attempt runs: the worker's place at one queue."""

    queue: str
    state: Any

    @property
    def worker(self) -> str:
        """The worker's name here."""
        ...

    def server_ms(self) -> int:
        """About what the server's clock shows."""
        ...

    def note(self, attempt: Attempt, kind: str, text: bytes | str, level: str) -> None:
        """Progress (p) or a log line (l), from any thread."""
        ...

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """The attempt is over; called on the loop."""
        ...


class Seat(Protocol):
    """A thread that runs an attempt."""

    def strike(self, attempt: Attempt, error: type[BaseException]) -> None:
        """Raises this in it."""
        ...


class Interrupter(Protocol):
    """Whoever runs an attempt, and can tell it to end."""

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:
        """For this cause; another one may have come before."""
        ...


class Attempt:
    """One run of a job here, as its executor, its handler and its end see it."""

    # Here and not in `__init__`, which runs for every job: most of these are never set.
    executor: Interrupter | None = None
    handle: Any = None
    seat: Seat | None = None
    begun = False
    misfit = False
    cause: Cause | None = None
    deadline: float | None = None
    error: BaseException | None = None
    _head: Record | None = None
    _known: Known | None = None
    _job: CurrentJob | None = None
    _callbacks: list[Callable[[], object]] | None = None

    def __init__(self, place: Place, worker: str, run: Run, plan: Plan, rules: Rules, data_at: int) -> None:
        self.place = place
        self.worker = worker
        self.run = run
        self.plan = plan
        self.rules = rules
        self._data_at = data_at

    # What its handler may see of it.

    @property
    def id(self) -> str:
        """The job's id."""
        return self.run.id

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self.place.queue

    @property
    def state(self) -> Any:
        """What the lifespan gave."""
        return self.place.state

    @property
    def head(self) -> Record:
        """What its record says, but for the data."""
        if self._head is None:
            self._head = record.read_head(self.run.record)[0]
        return self._head

    @property
    def data(self) -> bytes:
        """Its data, as JSON."""
        return self.run.record[self._data_at :]

    @property
    def known(self) -> Known:
        """What its life has been through before this run."""
        if self._known is None:
            self._known = decode_known(self.run.counts) if self.run.counts else NOTHING
        return self._known

    @property
    def started(self) -> int:
        """When the run began: milliseconds of the server's clock."""
        return Lease.read(self.run.lease).started

    @property
    def job(self) -> CurrentJob:
        """The job, as its code sees it."""
        if self._job is None:
            self._job = CurrentJob(self)
        return self._job

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self.cause is not None

    def tell_progress(self, text: bytes) -> None:
        """Reports its progress, and begins its timeout anew."""
        if self.rules.timeout is not None and self.cause is None:
            self.deadline = monotonic() + self.rules.timeout
        self.place.note(self, "p", text, "")

    def tell_line(self, level: str, text: str) -> None:
        """Writes a line of its log."""
        self.place.note(self, "l", text, level)

    def when_stopped(self, callback: Callable[[], object]) -> None:
        """Calls this when it is told to end; at once if it was already."""
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(callback)
        if self.cause is not None:
            self._call_back()

    # How it is told to end, and what its end leads to.

    def call(self) -> Any:
        """Calls its handler; of an `async def` one this is a coroutine."""
        plan = self.plan
        if plan.wants_job:
            return plan.function(self.job)
        try:
            arguments = plan.bind(self.run.record[self._data_at :])
        except Exception:
            self.misfit = True
            raise
        return plan.function(**arguments)

    def stop(self, cause: Cause) -> None:
        """Tells it to end. The first cause holds, but a lost lease beats all: nothing it says is heard any more."""
        if self.cause is None or cause is Cause.LOST:
            self.cause = cause
        elif self.cause is cause and cause is not Cause.TIMEOUT:
            return  # each renewal tells anew that it is cancelled
        if self.executor is not None:
            self.executor.interrupt(self, cause)
        if self._callbacks and self.plan.is_async:
            self._call_back()
        elif self._callbacks:
            # They may block, as the handler that gave them may.
            threading.Thread(target=self._call_back, name="skep-on-cancel", daemon=True).start()

    def _call_back(self) -> None:
        while self._callbacks:
            callback = self._callbacks.pop(0)
            try:
                given = callback()
                if inspect.iscoroutine(given):
                    task = asyncio.ensure_future(given)
                    _awaited.add(task)
                    task.add_done_callback(_awaited.discard)
            except Exception:
                log.exception("job %r: an on_cancel callback failed", self.id)

    def expire(self) -> None:
        """Its time is over."""
        self.stop(Cause.TIMEOUT)

    def returned(self, result: object) -> Outcome:
        """Its handler gave this."""
        try:
            text = self.plan.encode(result)
        except Exception as error:  # noqa: BLE001 - the result's own code may raise anything while it is written
            self.error = error
            return self._failed(describe(error, "permanent"), error)
        if self.run.record[0] & record.OPTIONS:
            return Succeeded(text, self._next_due())
        return Succeeded(text)

    def raised(self, error: BaseException) -> Outcome:
        """Its handler ended with this."""
        self.error = error
        if isinstance(error, FailedInChild):
            return error.outcome
        try:
            return self._raised(error)
        except Exception:
            log.exception("job %r: its failure could not be judged", self.id)
            told = JobError(type=type(error).__name__, message="its failure could not be judged", kind="permanent")
            return Failed(encode_error(told))

    def stalled(self, told: JobError) -> Outcome:
        """Its process died of this."""
        return Stalled(encode_error(told), self._next_due())

    def refused(self, told: JobError) -> Outcome:
        """Its process could not load the handler, for this reason."""
        if self.cause is not None:
            return self.raised(RuntimeError(told.message))
        self.error = error = RuntimeError(told.traceback)
        return self._failed(told, error)

    def _raised(self, error: BaseException) -> Outcome:
        match self.cause:
            case Cause.RETURN | Cause.LOST:
                return Returned()
            case Cause.CANCEL:
                return Cancelled("", self._next_due())
            case Cause.TIMEOUT:
                late = describe(error)
                text = f"its timeout of {self.rules.timeout:g} s is over"
                told = JobError(type="JobTimeout", message=text, traceback=late.traceback, kind="timeout")
                return self._failed(told, error)
            case None:
                return self._raised_by_itself(error)

    def _raised_by_itself(self, error: BaseException) -> Outcome:
        match error:
            case errors.Cancelled():
                return Cancelled(str(error), self._next_due())
            case errors.Retry():
                return self._asked_for_retry(error)
            case _:
                final = self.misfit or isinstance(error, errors.PermanentError) or self.plan.is_final(error)
                return self._failed(describe(error, "permanent" if final else "error"), error)

    def _asked_for_retry(self, wish: errors.Retry) -> Outcome:
        told = describe(wish.__cause__ or wish)
        try:
            after = self._wished_ms(wish)
        except errors.InvalidOption as error:
            return self._failed(describe(error), error)
        if not wish.count:
            return Postponed(self._policy(wish).backoff.delay_ms(1, 0.0) if after is None else after)
        failures = self.known.failures + 1
        if after is None or failures > self.rules.retries:
            return self._failed(told, wish)
        return Retried(after, encode_error(told))

    def _wished_ms(self, wish: errors.Retry) -> int | None:
        at: object = wish.at
        if isinstance(at, datetime):
            at = at.timestamp()
        if isinstance(at, int | float) and not isinstance(at, bool):
            return max(0, int(at * 1000) - self.place.server_ms())
        return None if wish.after is None else to_ms("after", wish.after)

    def _failed(self, told: JobError, error: BaseException) -> Failed | Retried:
        luck = random.random()  # noqa: S311 - only to keep retries apart
        policy = self._policy(error)
        return after_failure(policy, self.known.failures + 1, told, luck=luck, next_due=self._next_due())

    def _policy(self, error: BaseException) -> RetryPolicy:
        rules = self.rules
        if rules.chooser is None:
            return RetryPolicy(rules.retries, rules.backoff)
        return RetryPolicy(rules.retries, Backoff("fixed", rules.chosen_ms(self.known.failures + 1, error)))

    def _next_due(self) -> int | None:
        """Of a cron series, when its next life is due."""
        if not self.run.record[0] & record.OPTIONS:
            return None
        return next_due_of(self.head, self.known.began or self.started)
