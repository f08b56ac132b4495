"""Claims when there is room, and waits for the wake marker or for the next due time when there is nothing to claim.

Whoever has taken the marker, or owns the timer duty (the head of its last reply was not 0), is the one who comes: the
server wakes nobody else. So it claims, even where it has no room by now: a claim for no slots has another one woken.
"""

from __future__ import annotations

import asyncio

from skep import lifecycle
from skep.errors import SkepError
from skep.worker.slots import Slots
from skep.worker.station import Station

LISTEN = 30.0
"""Seconds for which the marker is waited for at a time: a connection that died unnoticed costs no more."""


class Fetch:
    """Claims of one queue. It is hungry while there may be more than its last claim gave, and idle otherwise."""

    def __init__(self, station: Station, slots: Slots) -> None:
        self._station = station
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._asker = slots.enter(station.priority)
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        # From the start, so that no queue is asked before one that is more important.
        self._asker.hungry = True

    async def run_once(self) -> None:
        """Waits until there may be something, and claims it."""
        if not self._asker.hungry:
            await self._woken.wait()
        owes = self._woken.is_set()
        self._woken.clear()
        self._set_hungry(True)
        slots = self._slots.take_now(self._asker)
        if slots == 0 and not owes:
            slots = await self._slots.take(self._asker)
            self._woken.clear()
        await self._claim(slots)

    async def listen_once(self) -> None:
        """Waits for the marker while the queue is idle."""
        await self._idle.wait()
        # What the last claim gave, and what becomes of it, goes first: who added it may wait for its result.
        await asyncio.sleep(0)
        if not self._idle.is_set():
            return
        try:
            taken = await self._station.store.listen([self._station.keys.wake], LISTEN)
        except SkepError:
            self.wake()
            raise
        # None is a time that is over; a connection that was lost may have taken a marker with it.
        if taken is not None:
            self.wake()

    def wake(self) -> None:
        """There may be something to claim, and maybe nobody else knows."""
        self._woken.set()
        self._idle.clear()
        self._slots.pass_over(self._asker)

    def pause(self) -> None:
        """Claims nothing more, and has others told of what only it may know."""
        self._disarm()
        self._asker.open = False
        self.wake()

    def resume(self) -> None:
        """Claims again."""
        self._asker.open = True
        self.wake()

    async def _claim(self, slots: int) -> None:
        station = self._station
        try:
            post = await station.at_post()
            post.number += 1
            lease, knows = station.bench.options.lease_ms, station.repertoire.knows()
            call = lifecycle.claim(station.keys, post.name, number=post.number, slots=slots, lease=lease, knows=knows)
            claimed = await station.store.send(call)
        except BaseException:
            # If it has runs, they are returned with the renewal that follows the next claim. What was owed still is.
            self._slots.release(slots)
            self._set_hungry(False)
            self._woken.set()
            raise
        self._disarm()
        if claimed is None:
            self._slots.release(slots)
            station.fenced(post)
            # The marker that it took is for its next registration to answer, even where it has no room.
            self._woken.set()
            return
        station.begin(post, claimed)
        taken = len(claimed.runs)
        if taken < slots:
            self._slots.release(slots - taken)
        self._set_hungry(taken >= slots)
        if claimed.head:
            rest = max(0, claimed.head - claimed.now) / 1000
            self._timer = self._loop.call_later(rest, self.wake)

    def _set_hungry(self, hungry: bool) -> None:
        self._asker.hungry = hungry
        if hungry:
            self._idle.clear()
        else:
            self._idle.set()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
