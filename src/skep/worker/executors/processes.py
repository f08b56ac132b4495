"""Runs handlers in child processes: warm ones, one run at a time in each, killed where a run must end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from time import monotonic
from typing import Any

import msgspec

from skep.core.job import JobError, decode_error
from skep.core.outcome import Succeeded
from skep.worker.attempt import Attempt, Cause, FailedInChild
from skep.worker.executors import wire
from skep.worker.executors.children import Child
from skep.worker.executors.source import main_program, place_of
from skep.worker.lifespan import Lifespan
from skep.worker.options import WorkerOptions
from skep.worker.plan import Rules

log = logging.getLogger("skep.worker")

LOADING = 60.0
"""Seconds that a child may take to begin, before the timeout of its run is counted."""

PATIENCE = {Cause.TIMEOUT: 5.0, Cause.CANCEL: 5.0, Cause.RETURN: 3.0}
"""Seconds for a run that looks at `cancelled`, or has callbacks, between its being told and its being killed."""

LAST_PATIENCE = 2.0
"""Seconds that idle children have for the end of their lifespan when the worker stops."""


class Killed(Exception):
    """The process of this run was killed, since the run was to end."""


@lru_cache(maxsize=64)
def terms_of(rules: Rules) -> wire.Terms:
    """These rules as a child is told."""
    chosen = rules.chooser is not None
    return wire.Terms(rules.retries, rules.backoff.to_json(), chosen, rules.timeout, rules.max_logs)


class ProcessExecutor:
    """Children that come as they are needed, and stay. `watch` is told of deadlines."""

    def __init__(self, options: WorkerOptions, watch: Callable[[float], None]) -> None:
        self.lifespan: Lifespan | None = None
        self._options = options
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._by_attempt: dict[Attempt, Child] = {}
        self._answers: dict[Attempt, asyncio.Future[Any]] = {}
        # By identity, and with the source itself, so that no other can get its identity.
        self._numbers: dict[int, tuple[wire.Source, int]] = {}
        self._closing = False
        self._none_left = asyncio.Event()

    def check(self) -> None:
        """Refuses a lifespan of the worker that its children could not find."""
        if self.lifespan is not None:
            place_of(self.lifespan)

    def start(self, attempt: Attempt) -> None:
        """Begins a run."""
        attempt.executor = self
        if attempt.cause is not None:
            self._loop.call_soon(self._never_begun, attempt)
            return
        try:
            child = self._idle.pop() if self._idle else self._new()
        except OSError as error:
            # No more processes can be had here, for now.
            told = JobError(type="ProcessDied", message=f"no child process could be started: {error}", kind="stall")
            self._loop.call_soon(self._finish, attempt, attempt.stalled(told))
            return
        self._give(child, attempt)

    async def call(self, attempt: Attempt) -> Any:
        """What its handler returned, for middleware around it; `FailedInChild` carries any other outcome."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._answers[attempt] = answer
        around = attempt.executor
        self.start(attempt)
        outcome = await answer
        attempt.executor = around
        if isinstance(outcome, Succeeded):
            return msgspec.json.decode(outcome.result)
        if isinstance(attempt.error, Killed):
            raise attempt.error
        raise FailedInChild(str(attempt.error or ""), outcome)

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:
        """Kills its process: at once, or after some seconds where it has asked for them."""
        child = self._by_attempt.get(attempt)
        if child is None:
            return
        patience = PATIENCE.get(cause)
        if patience is None or not child.patient:
            child.kill()
        elif child.killing is None:
            child.tell_to_stop(cause.name)
            child.killing = self._loop.call_later(patience, child.kill)

    def close(self) -> None:
        """The children end with their lifespans; what still runs is killed."""
        self._closing = True
        for child in self._all:
            if child in self._idle:
                child.dismiss()
            else:
                # Nobody hears its end any more.
                child.attempt = None
                child.kill()

    async def closed(self) -> None:
        """Returns when all children have ended."""
        self.close()
        if self._all:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._none_left.wait(), LAST_PATIENCE)
        for child in list(self._all):
            child.kill()
            child.collect(wait=True)
        self._all.clear()

    # What children tell.

    def heard(self, child: Child, report: wire.Report) -> None:
        """A child has told this."""
        attempt = child.attempt
        if attempt is None:
            return
        match report:
            case wire.Ended():
                self._ended(child, attempt, report)
            case wire.Note("p", text):
                attempt.tell_progress(text)
            case wire.Note(_, text, level):
                attempt.tell_line(level, text.decode())
            case wire.Loaded():
                self._loaded(child, attempt)
            case wire.Patience(wanted):
                child.patient = wanted
                if not wanted and child.killing is not None:
                    child.kill()
            case wire.Refused(error):
                told = decode_error(error)
                self._free(child, last=True)
                self._finish(attempt, attempt.refused(told))

    def died(self, child: Child, cause: JobError) -> None:
        """A child has ended: so has its run, and another child takes its place."""
        self._all.discard(child)
        if not self._all:
            self._none_left.set()
        if child in self._idle:
            self._idle.remove(child)
        attempt = child.attempt
        if child.was_ready and not self._closing:
            self._replace()
        if attempt is None:
            return
        child.attempt = None
        self._by_attempt.pop(attempt, None)
        if attempt.cause is None:
            log.error("%s: the process of job %r died: %s", attempt.queue, attempt.id, cause.message)
            self._finish(attempt, attempt.stalled(cause))
        else:
            self._finish(attempt, attempt.raised(Killed("its process was killed")))

    # How a run goes.

    def _give(self, child: Child, attempt: Attempt) -> None:
        source = attempt.plan.source
        assert source is not None  # noqa: S101 - the bench sends here only what has one
        _, number = self._numbers.setdefault(id(source), (source, len(self._numbers)))
        new = number not in child.known
        child.known.add(number)
        child.attempt, child.patient = attempt, False
        child.number += 1
        self._by_attempt[attempt] = child
        timeout = attempt.rules.timeout
        if new and timeout is not None:
            attempt.deadline = monotonic() + LOADING + timeout
        run = attempt.run
        child.send(
            wire.Begin(
                handler=number,
                source=source if new else None,
                number=child.number,
                id=run.id,
                queue=attempt.queue,
                worker=attempt.worker,
                now=attempt.place.server_ms(),
                terms=terms_of(attempt.rules),
                lease=run.lease,
                record=run.record,
                counts=run.counts,
            )
        )

    def _loaded(self, child: Child, attempt: Attempt) -> None:
        child.was_ready = True
        timeout = attempt.rules.timeout
        if timeout is not None and attempt.cause is None:
            attempt.deadline = monotonic() + timeout
            self._watch(attempt.deadline)

    def _ended(self, child: Child, attempt: Attempt, report: wire.Ended) -> None:
        outcome = wire.outcome_of(report)
        if report.trace:
            attempt.error = FailedInChild(report.trace, outcome)
        self._free(child, last=report.last)
        self._finish(attempt, outcome)

    def _free(self, child: Child, *, last: bool) -> None:
        if child.attempt is not None:
            self._by_attempt.pop(child.attempt, None)
        child.attempt = None
        if child.killing is not None:
            # It was told to end and did; what its callbacks do beside is not for the next run to bear.
            child.killing.cancel()
            child.killing = None
            last = True
        if last or child.doomed:
            child.dismiss()
        else:
            self._idle.append(child)

    def _finish(self, attempt: Attempt, outcome: Any) -> None:
        answer = self._answers.pop(attempt, None)
        if answer is None:
            attempt.place.ended(attempt, outcome)
        elif not answer.done():
            answer.set_result(outcome)

    def _never_begun(self, attempt: Attempt) -> None:
        self._finish(attempt, attempt.raised(Killed("it was to end before it began")))

    # Children.

    def _new(self) -> Child:
        options, root = self._options, logging.getLogger()
        handler = root.handlers[0] if root.handlers else None
        form: Any = getattr(handler.formatter, "_fmt", None) if handler is not None else None
        child = Child(
            self,
            wire.Setup(
                path=sys.path,
                modules=tuple(options.modules),
                main=main_program(),
                lifespan=None if self.lifespan is None else place_of(self.lifespan),
                max_jobs=options.max_jobs_per_child,
                max_rss=options.max_rss,
                log_level=None if handler is None else root.level,
                log_format=form,
            ),
        )
        self._all.add(child)
        return child

    def _replace(self) -> None:
        try:
            self._idle.insert(0, self._new())
        except OSError as error:
            log.warning("a child process could not be replaced: %s; it is tried again when it is needed", error)
