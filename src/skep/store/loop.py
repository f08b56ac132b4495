"""What an asynchronous transport holds in its event loop: connections, and calls of cancelled callers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from skep.core.lanes import Trip
from skep.errors import SkepError
from skep.store.connect import Connection
from skep.store.dial import AsyncDialer
from skep.store.transport import LONG_REST, Clock, Side, Transport, watch
from skep.store.wires import AsyncWire, Sweeper

# Callers beyond this wait for a connection: a burst of thousands of reads must not open thousands of sockets.
MOST_WIRES = 32

_transports: weakref.WeakSet[LoopTransport] = weakref.WeakSet()
_of_parents: list[Any] = []


class LoopTransport(Transport[AsyncWire]):
    """Bound to the loop that runs at its first use, and to another when that one has ended."""

    def __init__(self, connection: Connection, clock: Clock | None = None) -> None:
        super().__init__(connection, clock)
        self._dialer: AsyncDialer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._until_the_loop_ends: AsyncGenerator[None, None] | None = None
        self._slots: asyncio.Semaphore
        self._sweeper: Sweeper
        self._adopted: set[asyncio.Task[None]] = set()
        self._dropped: list[Trip] = []
        _transports.add(self)

    async def _drive(self, side: Side[AsyncWire], trip: Trip) -> Any:
        raise NotImplementedError

    async def _bind(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise SkepError("it is in use on another event loop, which has not ended: make a queue for each loop")
        self._loop = loop
        self._slots, self._sweeper = asyncio.Semaphore(MOST_WIRES), Sweeper(loop)
        self._idle, self._adopted, self._dropped = {None: []}, set(), []
        # Lanes, and fences that are due, outlive a loop.
        for side in self._sides.values():
            side.idle, side.node, side.fencing = self._idle[None], None, self._lock()
        self._until_the_loop_ends = self._at_the_end_of_the_loop()
        await anext(self._until_the_loop_ends)

    async def _at_the_end_of_the_loop(self) -> AsyncGenerator[None, None]:
        # A loop that ends asks its asynchronous generators to close: the last moment at which sockets can be
        # closed, and trips be given up that were cancelled with everything else.
        try:
            yield
        finally:
            for task in self._adopted:
                task.cancel()
            await self._wind_up()

    async def _wind_up(self) -> None:
        await asyncio.gather(*self._adopted, return_exceptions=True)
        self._sweeper.stop()
        while self._dropped:
            await self._drop_wire(self._dropped.pop())
        for idle in self._idle.values():
            while idle:
                await idle.pop().close(wait=True)

    async def _take(self, side: Side[AsyncWire], trip: Trip) -> AsyncWire:
        # Who waits for something to happen keeps nobody else from his answer.
        slot = None if trip.patience else self._slots
        if slot is not None:
            await slot.acquire()
        try:
            while side.idle:
                wire = side.idle.pop()
                if trip.began - wire.rested < LONG_REST or await wire.is_alive():
                    wire.slot = slot
                    return wire
                await wire.close()
            return AsyncWire(await self._dial(side), slot)
        except BaseException:
            if slot is not None:
                slot.release()
            raise

    async def _dial(self, side: Side[AsyncWire]) -> Any:
        if self._dialer is None:
            self._dialer = AsyncDialer(self.connection)
            self._where = self._dialer.endpoint.safe_url
        if self._dialer.spread and side.node is None:
            side.node = await self._dialer.locate(side.key)
            side.idle = self._idle.setdefault(side.node, [])
        return await self._dialer.dial(side.node)

    def _lay_down(self, side: Side[AsyncWire], trip: Trip, wire: AsyncWire) -> None:
        wire.rested = trip.began
        if wire.slot is not None:
            wire.slot.release()
        side.idle.append(wire)
        if self._closed:
            self._keep(self._hang_up(side.idle))

    async def _close(self, wire: AsyncWire) -> None:
        if wire.slot is not None:
            wire.slot.release()
        await wire.close()

    async def _drop_wire(self, trip: Trip) -> None:
        wire, trip.wire = trip.wire, None
        if wire is not None:
            await self._close(wire)

    async def _hang_up(self, idle: list[AsyncWire]) -> None:
        while idle:
            await idle.pop().close()

    async def _rest(self, side: Side[AsyncWire], trip: Trip, pause: float) -> None:
        """Before the next attempt: what failed one call is not trusted by the others."""
        await self._hang_up(side.idle)
        self._look_anew(side)
        if self._closed:
            trip.until = watch()
        await asyncio.sleep(pause)

    def _adopt(self, side: Side[AsyncWire], trip: Trip) -> None:
        """Goes on with a trip whose caller was cancelled."""
        if trip.wire is None:
            trip.loose, trip.out = trip.loose or trip.out, False
        self._keep(self._go_on(side, trip)).add_done_callback(lambda _: self._let_go(side, trip))

    async def _go_on(self, side: Side[AsyncWire], trip: Trip) -> None:
        # Nobody hears how it ends. Where a copy may still arrive after that, its fence is owed.
        with contextlib.suppress(SkepError):
            await self._drive(side, trip)

    def _let_go(self, side: Side[AsyncWire], trip: Trip) -> None:
        # Of a task that was cancelled with its loop, perhaps before its first step.
        side.give_up(trip)
        if trip.wire is not None:
            self._dropped.append(trip)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._adopted.add(task)
        task.add_done_callback(self._adopted.discard)
        return task

    def _lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    def _begin_anew(self) -> None:
        super()._begin_anew()
        # Kept, so that nothing of it ends here: a socket that closes would leave the parent's selector, too.
        _of_parents.append((self._loop, self._idle, self._adopted, self._dropped, self._until_the_loop_ends))
        self._dialer, self._loop, self._until_the_loop_ends = None, None, None
        self._adopted, self._dropped = set(), []


def _after_fork() -> None:
    for transport in tuple(_transports):
        transport._begin_anew()


os.register_at_fork(after_in_child=_after_fork)
