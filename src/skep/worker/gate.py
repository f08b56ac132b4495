"""At most so many runs of one task at once in this worker."""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import Callable

from skep.worker.attempt import Attempt, Cause


class Gate:
    """Lets runs of a task begin while fewer than its limit do run. Those that wait keep their slot."""

    def __init__(self, limit: int, launch: Callable[[Attempt], None]) -> None:
        self._limit = limit
        self._launch = launch
        self._running = 0
        self._waiting: deque[Attempt] = deque()

    def enter(self, attempt: Attempt) -> None:
        """Begins it, or lets it wait."""
        if self._running < self._limit:
            self._running += 1
            self._launch(attempt)
        else:
            attempt.executor = self
            self._waiting.append(attempt)

    def leave(self, attempt: Attempt) -> None:
        """A run is over: the next may begin."""
        if attempt.executor is self:
            return
        self._running -= 1
        if self._waiting:
            self._running += 1
            self._launch(self._waiting.popleft())

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:  # noqa: ARG002 - the attempt knows it
        """One that waits is told to end."""
        self._waiting.remove(attempt)
        attempt.place.ended(attempt, attempt.raised(CancelledError()))
