"""One timer for the timeouts of all runs: a timer for each would cost more than most runs do."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from time import monotonic
from typing import Protocol

SWEEP = 0.05
"""Seconds between two looks at the runs: no timeout is noticed later than this."""

NUDGE = 1.0
"""Seconds after which a run that was told that its time is over is told again: a handler may have swallowed it."""


class Limited(Protocol):
    """A run that may have a deadline, on the monotonic clock."""

    deadline: float | None

    def expire(self) -> None:
        """Its time is over."""
        ...


class Deadlines:
    """Looks after the deadlines of these runs."""

    def __init__(self, runs: Collection[Limited]) -> None:
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0.0

    def watch(self, deadline: float) -> None:
        """A run has this deadline. Nothing is done where a look is due before it."""
        if self._timer is None or deadline < self._at:
            self._arm(deadline)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Not by the loop's own clock: uvloop's stands still while the loop has nothing to do, and threads ask too.
        rest = max(at - monotonic(), SWEEP)
        self._at = at
        self._timer = self._loop.call_later(rest, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = monotonic()
        first: float | None = None
        for run in list(self._runs):
            if run.deadline is None:
                continue
            if run.deadline <= now:
                run.deadline = now + NUDGE
                run.expire()
            if first is None or run.deadline < first:
                first = run.deadline
        if first is not None:
            self._arm(first)

    def close(self) -> None:
        """Looks no more."""
        if self._timer is not None:
            self._timer.cancel()
