"""So many runs at once, shared by the queues of a worker: strictly by their priority, by turns among equals."""

from __future__ import annotations

import asyncio
from itertools import count

MOST_A_TRIP = 500

FEW = 50
"""A claim is for half of all slots at most: while those run, the server fills the others. But for so many it is not
made smaller: trips for fewer would cost more than both sides gain by working at the same time.
"""


class Asker:
    """A queue's place in the line for slots: `hungry` while something may wait there, not `open` while it is paused."""

    __slots__ = ("asking", "hungry", "open", "priority", "turn")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.turn = 0
        self.hungry = False
        self.open = True
        self.asking: asyncio.Future[int] | None = None


class Slots:
    """Hands out free slots."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._most = min(MOST_A_TRIP, max(FEW, -(-total // 2)))
        self._loop = asyncio.get_running_loop()
        self._askers: list[Asker] = []
        self._turns = count(1)
        self._due = False
        self._empty: asyncio.Event | None = None

    def enter(self, priority: int) -> Asker:
        """A place in the line."""
        asker = Asker(priority)
        self._askers.append(asker)
        return asker

    def release(self, slots: int = 1) -> None:
        """So many are free again."""
        self.free += slots
        if not self._due:
            # Runs that end in the same turn of the loop make room for one claim, not for one each.
            self._due = True
            self._loop.call_soon(self._grant)

    async def take(self, asker: Asker) -> int:
        """Waits for free slots, and gives how many it may fill; 0: it was passed over."""
        asker.asking = self._loop.create_future()
        try:
            self._grant()
            return await asker.asking
        except asyncio.CancelledError:
            if asker.asking.done() and not asker.asking.cancelled():
                self.release(asker.asking.result())
            raise
        finally:
            asker.asking = None

    def take_now(self, asker: Asker) -> int:
        """The free slots that it may fill at this moment; 0: none, or others go first."""
        if self.free <= 0 or not asker.open or self._best() != asker.priority:
            return 0
        return self._share(asker, [asker])

    def pass_over(self, asker: Asker) -> None:
        """If it waits, it waits no longer."""
        if asker.asking is not None and _waits(asker):
            asker.asking.set_result(0)

    async def all_free(self) -> None:
        """Returns when nothing runs."""
        self._empty = asyncio.Event()
        if self.free < self.total:
            await self._empty.wait()

    def _best(self) -> int:
        """The priority that goes first: a queue that may have more holds back those behind it, also while it asks."""
        return min((asker.priority for asker in self._askers if asker.hungry and asker.open), default=0)

    def _grant(self) -> None:
        self._due = False
        if self._empty is not None and self.free >= self.total:
            self._empty.set()
        while self.free > 0:
            best = self._best()
            line = [each for each in self._askers if each.open and each.priority == best and _waits(each)]
            if not line:
                return
            first = min(line, key=lambda asker: asker.turn)
            if first.asking is not None:
                first.asking.set_result(self._share(first, line))

    def _share(self, first: Asker, line: list[Asker]) -> int:
        slots = min(-(-self.free // len(line)), self._most)
        self.free -= slots
        first.turn = next(self._turns)
        return slots


def _waits(asker: Asker) -> bool:
    return asker.asking is not None and not asker.asking.done()
