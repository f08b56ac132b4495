"""Runs what is due in this process: real claims, real data, the worker's own code for runs and their ends."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from time import monotonic
from typing import Any, overload

from skep import acts, lifecycle, views
from skep.aqueue import AsyncQueue
from skep.base import BaseQueue
from skep.core.codec import decode
from skep.core.outcome import Cancelled, Failed, Outcome, Postponed, Retried, Returned, Succeeded
from skep.core.record import pack, read_head
from skep.errors import BlockingCall, Retry
from skep.queue import Queue
from skep.store.aio import AsyncStore
from skep.worker import schedules
from skep.worker.attempt import Attempt
from skep.worker.context import current
from skep.worker.deadlines import Deadlines
from skep.worker.executors.loop import LoopExecutor
from skep.worker.lifespan import enter
from skep.worker.plan import Plan
from skep.worker.post import Post
from skep.worker.runtime import settings_of

LEASE_MS = 86_400_000
"""Nobody renews it: a handler may take its time, and be looked at in a debugger."""

STATUS: dict[type[Outcome], str] = {
    Succeeded: "succeeded",
    Retried: "retrying",
    Postponed: "retrying",
    Failed: "failed",
    Cancelled: "cancelled",
    Returned: "returned",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run that `drain` has made.

    id      of its job, and `task`, `data`
    number  of the run within the job's life, from 1
    status  succeeded, retrying, failed or cancelled: where it led
    result  what the handler returned, as JSON gave it back and its annotation says
    error   what it raised
    """

    id: str
    task: str | None
    data: Any
    number: int
    status: str
    result: Any = None
    error: BaseException | None = None


@overload
def drain(queue: Queue, *, raise_errors: bool = True) -> list[Run]: ...
@overload
def drain(queue: AsyncQueue, *, raise_errors: bool = True) -> Coroutine[Any, Any, list[Run]]: ...
def drain(queue: Queue | AsyncQueue, *, raise_errors: bool = True) -> Any:
    """Runs all that is due, one after the other, what that adds too, until nothing is; gives the runs in order.

    By the clock of the queue, where it was given one. What fails is settled as a worker would settle it, and its error
    is raised here; with `raise_errors=False` it is in the runs, and retries run when their time has come. `def`
    handlers of a `Queue` run in the calling thread, whatever their executor, and their timeouts are not watched.
    Of an `AsyncQueue` it is `await drain(queue)`.
    """
    if isinstance(queue, AsyncQueue):
        return _drain_here(queue, raise_errors=raise_errors)
    if asyncio._get_running_loop() is not None:
        raise BlockingCall("await drain(queue.aio)")
    with asyncio.Runner() as runner:
        return _drain_with(runner, queue, raise_errors=raise_errors)


def _drain_with(runner: asyncio.Runner, queue: Queue, *, raise_errors: bool) -> list[Run]:
    drained = _Drain(queue)
    try:
        runner.run(drained.open())
        while (attempt := runner.run(drained.next())) is not None:
            # Between two turns of the loop, so that a handler may make blocking calls.
            outcome = runner.run(drained.outcome_of(attempt)) if attempt.plan.is_async else _call(attempt)
            runner.run(drained.settle(attempt, outcome))
            if raise_errors:
                _raise(attempt, outcome)
    finally:
        runner.run(drained.close())
    return drained.runs


async def _drain_here(queue: AsyncQueue, *, raise_errors: bool) -> list[Run]:
    drained = _Drain(queue)
    try:
        await drained.open()
        while (attempt := await drained.next()) is not None:
            is_async = attempt.plan.is_async
            outcome = await (drained.outcome_of(attempt) if is_async else asyncio.to_thread(_call, attempt))
            await drained.settle(attempt, outcome)
            if raise_errors:
                _raise(attempt, outcome)
    finally:
        await drained.close()
    return drained.runs


def _call(attempt: Attempt) -> Outcome:
    """Runs a `def` handler. What is no error of a program, such as a test that is skipped, is not caught."""
    token = current.set(attempt)
    try:
        return attempt.returned(attempt.call())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises ends its run
        return attempt.raised(error)
    finally:
        current.reset(token)


def _raise(attempt: Attempt, outcome: Outcome) -> None:
    """A retry that the handler has asked for is no error."""
    error = attempt.error
    wished = isinstance(outcome, Retried) and isinstance(error, Retry)
    if isinstance(outcome, Failed | Retried) and error is not None and not wished:
        error.add_note(f"in job {attempt.id!r} of queue {attempt.queue!r}, run by drain()")
        raise error


class _Drain:
    """A worker with one slot and no time of its own. It is the place of its runs."""

    def __init__(self, queue: BaseQueue) -> None:
        self.queue = queue.name
        self.state: Any = None
        self.runs: list[Run] = []
        self._served = queue
        self._keys = queue.keys
        self._store = AsyncStore(queue.connection, queue._blocking.clock)
        self._stack = AsyncExitStack()
        self._plans = {handler.name: Plan(handler, queue.defaults.terms) for handler in queue.registry}
        self._post: Post | None = None
        self._notes: list[tuple[str, bytes, str, bytes | str, str, int]] = []
        self._left = 0
        self._now = 0
        self._ended: asyncio.Future[Outcome] | None = None

    async def open(self) -> None:
        """As a worker starts."""
        self.state = await enter(self._stack, self._served.registry.lifespan)
        settings = settings_of(self._served)
        if settings:
            await self._store.send(lifecycle.configure(self._keys, settings))
        await schedules.write(self._store, self._served)
        await self._join()

    async def next(self) -> Attempt | None:
        """The next run; None: nothing is due."""
        while True:
            await self._store.run(acts.upkeep(self._keys))
            claimed = await self._claim()
            if claimed.runs:
                self._now, self._left = claimed.now, 0
                return self._attempt(claimed.runs[0])
            # Jobs of unknown tasks are set aside some at a time, and those behind them may be known.
            left, before = (await self._store.send(views.counts(self._keys))).waiting, self._left
            self._left = left
            if left in (0, before):
                return None

    async def outcome_of(self, attempt: Attempt) -> Outcome:
        """Runs an `async def` handler as a worker does."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        deadlines, executor = Deadlines({attempt}), LoopExecutor()
        if attempt.rules.timeout is not None:
            attempt.deadline = monotonic() + attempt.rules.timeout
            deadlines.watch(attempt.deadline)
        executor.start(attempt)
        try:
            return await self._ended
        finally:
            deadlines.close()
            attempt.handle.cancel()  # of one that has ended, it does nothing

    async def settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Says what it had to say, and how it ended."""
        notes, self._notes = self._notes, []
        if notes:
            await self._store.send(lifecycle.note(self._keys, notes))
        await self._store.send(lifecycle.leave_run(self._keys, attempt.worker, [(attempt.run, outcome)]))
        job, result = attempt.job, None
        if isinstance(outcome, Succeeded):
            handler = self._served.registry.find(attempt.head.task)
            result = decode(outcome.result) if handler is None else handler.read_result(outcome.result)
        status = STATUS[type(outcome)]
        self.runs.append(Run(job.id, job.task, job.data, job.run, status, result, attempt.error))

    async def close(self) -> None:
        """Hands back what was not settled, and leaves."""
        try:
            if self._post is not None:
                await self._store.send(lifecycle.leave(self._keys, self._post.name))
            await self._stack.aclose()
        finally:
            await self._store.close()

    async def _join(self) -> Post:
        self._post = post = Post(0)
        info = {"host": socket.gethostname(), "pid": os.getpid(), "version": version("skep"), "slots": 1}
        await self._store.send(lifecycle.join(self._keys, post.name, lease=LEASE_MS, info=info))
        return post

    async def _claim(self) -> lifecycle.Claimed:
        knows = pack(list(self._plans))
        post = self._post or await self._join()
        while True:
            post.number += 1
            call = lifecycle.claim(self._keys, post.name, number=post.number, slots=1, lease=LEASE_MS, knows=knows)
            claimed = await self._store.send(call)
            if claimed is not None:
                return claimed
            post = await self._join()  # a given clock has gone on for longer than the lease

    def _attempt(self, run: lifecycle.Run) -> Attempt:
        head, at = read_head(run.record)
        plan = self._plans[head.task]
        return Attempt(self, self.worker, run, plan, plan.rules.under(head.options), at)

    # The place of its runs.

    @property
    def worker(self) -> str:
        """Its name at the queue."""
        return self._post.name if self._post is not None else ""

    def server_ms(self) -> int:
        """What the clock showed when the run began."""
        return self._now

    def note(self, attempt: Attempt, kind: str, text: bytes | str, level: str) -> None:
        """Progress or a log line."""
        self._notes.append((attempt.id, attempt.run.lease, kind, text, level, attempt.rules.max_logs))

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:  # noqa: ARG002 - there is one at a time
        """The run of an `async def` handler is over."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(outcome)
