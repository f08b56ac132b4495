"""What time brings to a queue. Claims and renewals advance it in passing; this is for idle workers and cron series."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from skep import lifecycle
from skep.lifecycle import Wanted
from skep.worker.series import due_of
from skep.worker.station import Station

MOST_SLICES = 100
"""Slices in one pass. Where more is left, another pass begins at once: who waits for this one does not wait for all."""


class Upkeep:
    """One pass of upkeep, and the due times of cron series that the server wants to be told."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._nexts: dict[str, int] = {}
        self._wanted = asyncio.Event()

    def tell(self, wanted: Sequence[Wanted]) -> None:
        """These due times are wanted: they go with a pass that begins at once."""
        for each in wanted:
            self._nexts[each.key] = due_of(each)
        self._wanted.set()

    async def run_once(self) -> None:
        """Slice after slice, until nothing is left to do now."""
        station = self._station
        for _ in range(MOST_SLICES):
            nexts, self._nexts = self._nexts, {}
            lease = station.bench.options.lease_ms
            done = await station.store.send(lifecycle.upkeep(station.keys, lease=lease, nexts=nexts))
            for each in done.wanted:
                self._nexts[each.key] = due_of(each)
            if not done.more and not self._nexts:
                return
        self._wanted.set()

    async def run_when_wanted(self) -> None:
        """A pass as soon as a due time is wanted."""
        await self._wanted.wait()
        self._wanted.clear()
        await self.run_once()
