"""Runs `def` handlers in threads, and raises in them what ends them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from skep.errors import Cancelled, JobTimeout, LeaseLost
from skep.worker.attempt import Attempt, Cause
from skep.worker.context import current

RAISED: dict[Cause, type[BaseException]] = {
    Cause.TIMEOUT: JobTimeout,
    Cause.LOST: LeaseLost,
    Cause.RETURN: Cancelled,
}
"""What is raised in a handler that is to end. One whose job was cancelled sees `job.cancelled` and ends as it likes."""

T = TypeVar("T")
Answer: TypeAlias = asyncio.Future[tuple[Any, BaseException | None]]
Work: TypeAlias = tuple[Attempt, Answer | None]

_raise = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise.argtypes = (ctypes.c_ulong, ctypes.py_object)


class Seat:
    """One thread, and the attempt that runs in it."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self._lock = threading.Lock()
        self._attempt: Attempt | None = None
        self._struck = False

    def run(self, attempt: Attempt, returned: Callable[[Any], T], raised: Callable[[BaseException], T]) -> T:
        """What becomes of a handler's end, whatever is raised in this thread, at whatever instruction."""
        try:
            self._enter(attempt)
            try:
                ended = returned(attempt.call())
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises, SystemExit too, ends its run only
                ended = raised(error)
            finally:
                self._leave()
        except BaseException as late:  # noqa: BLE001 - it was told to end before it began, or when it was ending
            self._leave()
            return raised(late)
        return ended

    def strike(self, attempt: Attempt, error: type[BaseException]) -> None:
        """Raises this in the thread, if it still runs that attempt, when it next runs Python."""
        with self._lock:
            if self._attempt is attempt:
                self._struck = True
                _raise(self.ident, error)

    def _enter(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempt, self._struck = attempt, False
        if attempt.cause is not None:
            raise RAISED.get(attempt.cause, Cancelled)

    def _leave(self) -> None:
        """From here on nothing is raised in this thread any more."""
        while self._attempt is not None:
            with contextlib.suppress(*RAISED.values()), self._lock:
                if self._struck:
                    _raise(self.ident, ctypes.py_object())
                self._attempt = None


class ThreadExecutor:
    """Threads that come as they are needed, one for each `def` handler at work, and stay."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._ended: deque[tuple[Attempt, Answer | None, Any]] = deque()
        self._telling = False
        self._busy = 0
        self._threads = 0

    def start(self, attempt: Attempt) -> None:
        """Begins a run."""
        attempt.executor = self
        self._put((attempt, None))

    async def call(self, attempt: Attempt) -> Any:
        """What its handler returns: within middleware, a run is a task that waits for a thread."""
        answer: Answer = self._loop.create_future()
        self._put((attempt, answer))
        while not answer.done():
            try:
                await asyncio.shield(answer)
            except asyncio.CancelledError:
                if attempt.cause is None:
                    raise
                self.interrupt(attempt, attempt.cause)
        result, error = answer.result()
        if error is not None:
            raise error
        return result

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:
        """Raises in its thread what the cause says."""
        if cause in RAISED and attempt.seat is not None:
            attempt.seat.strike(attempt, RAISED[cause])

    def close(self) -> None:
        """The threads end when their runs do."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def _put(self, work: Work) -> None:
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            name = f"skep-job-{self._threads}"
            # A daemon: a handler that never ends must not keep its process from ending.
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._waiting.put(work)

    def _work(self) -> None:
        seat = Seat()
        while (work := self._waiting.get()) is not None:
            attempt, answer = work
            attempt.seat = seat
            self._ended.append((attempt, answer, self._context.copy().run(_one, seat, attempt, answer)))
            if not self._telling:
                self._telling = True
                # The loop may be closed: then nobody waits for this run any more.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        # First the flag: who ends a run later calls again.
        self._telling = False
        while self._ended:
            attempt, answer, ended = self._ended.popleft()
            self._busy -= 1
            if answer is None:
                attempt.place.ended(attempt, ended)
            elif not answer.done():
                answer.set_result(ended)


def _one(seat: Seat, attempt: Attempt, answer: Answer | None) -> Any:
    current.set(attempt)
    if answer is None:
        return seat.run(attempt, attempt.returned, attempt.raised)
    return seat.run(attempt, lambda result: (result, None), lambda error: (None, error))
