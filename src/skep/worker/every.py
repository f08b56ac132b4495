"""The one shape of a loop: `run_once`, then a rest, for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from skep.errors import ServerError

log = logging.getLogger("skep.worker")

FIRST_REST, LONGEST_REST = 0.1, 5.0
"""Seconds of rest after a pass that failed, doubled up to the longest while it goes on failing."""


class Every:
    """Runs `run_once` again and again, at this interval (0: at once), give or take a tenth.

    A pass that fails is told to `trouble`, and tried again after a rest that grows: a loop that ended at a server's
    first hiccup would leave a worker that looks alive and does nothing.
    """

    def __init__(
        self,
        interval: float,
        run_once: Callable[[], Awaitable[object]],
        *,
        trouble: Callable[[Exception], None] | None = None,
    ) -> None:
        self._interval = interval
        self._run_once = run_once
        self._trouble = trouble
        self._failed = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self) -> None:
        """For ever; ended by being cancelled."""
        while True:
            try:
                await self._run_once()
                self._failed = 0
                rest = self._interval
            except Exception as error:  # noqa: BLE001 - see the class: whatever it was, the next pass may do better
                rest = self._after(error)
            self._told()
            if rest:
                await asyncio.sleep(rest * random.uniform(0.9, 1.1))  # noqa: S311 - only to keep loops apart

    async def passed(self) -> None:
        """Returns when the next pass is done."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _told(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def _after(self, error: Exception) -> float:
        self._failed += 1
        if self._failed == 1 or not isinstance(error, ServerError):
            log.warning("%s; it is tried again", error, exc_info=None if isinstance(error, ServerError) else error)
        if self._trouble is not None:
            self._trouble(error)
        return min(LONGEST_REST, FIRST_REST * 2.0 ** min(self._failed, 10))
