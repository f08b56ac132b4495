"""Connections of redis-py, spoken on directly by one owner at a time: packed commands out, raw replies in."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

from redis.exceptions import RedisError


class Wire:
    """A connection that blocks."""

    __slots__ = ("_made", "rested")

    def __init__(self, made: Any) -> None:
        self._made = made
        self.rested = 0.0

    def say(self, packed: bytes) -> None:
        """Sends what is packed already."""
        self._made.send_packed_command((packed,), check_health=False)

    def hear(self, limit: float | None = None) -> Any:
        """One reply, raw; an error of the server is raised. `limit`: seconds, where not the usual."""
        if limit is None:
            return self._made.read_response()
        return self._made.read_response(timeout=limit)

    def ask(self, packed: bytes) -> Any:
        """Sends this and waits for its reply."""
        self.say(packed)
        return self.hear()

    def is_alive(self) -> bool:
        """Whether the server has neither closed it nor said anything unasked."""
        try:
            return not self._made.can_read()
        except (RedisError, OSError):
            return False

    def close(self) -> None:
        """Ends it, also from another thread: who waits for a reply on it is told at once."""
        self._made.disconnect()


class AsyncWire:
    """A connection of an event loop. `slot`, if it uses one up, is given back by its owner."""

    __slots__ = ("_cancelling", "_late", "_made", "_task", "due", "rested", "slot")

    def __init__(self, made: Any, slot: asyncio.Semaphore | None) -> None:
        self._made = made
        self.slot = slot
        self.rested = 0.0
        self.due = math.inf
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._late = False

    async def say(self, packed: bytes) -> None:
        """Sends what is packed already."""
        await self._made.send_packed_command((packed,), check_health=False)

    async def hear(self) -> Any:
        """One reply, raw; an error that the server replied is raised. Cancelled, it may be called again."""
        return await self._made.read_response(disconnect_on_error=False)

    async def ask(self, packed: bytes) -> Any:
        """Sends this and waits for its reply."""
        await self.say(packed)
        return await self.hear()

    def begin(self, due: float) -> None:
        """From now on this task waits for it, until `due` on the loop's clock."""
        task = asyncio.current_task()
        self._task, self._cancelling = task, task.cancelling() if task is not None else 0
        self.due = due

    def expire(self) -> None:
        """The time is over: who waits for it is told, in the way of `asyncio.timeout`."""
        self._late, self.due = True, math.inf
        if self._task is not None:
            self._task.cancel()

    def was_late(self) -> bool:
        """Whether a cancellation that has arrived was for the time being over, and nobody else's."""
        late, self._late = self._late, False
        return late and self._task is not None and self._task.uncancel() <= self._cancelling

    async def is_alive(self) -> bool:
        """Whether the server has neither closed it nor said anything unasked."""
        try:
            return not await self._made.can_read()
        except (RedisError, OSError):
            return False

    async def close(self, *, wait: bool = False) -> None:
        """Ends it; with `wait`, until nothing is left of it in the loop."""
        with contextlib.suppress(RedisError, OSError):
            await self._made.disconnect(nowait=not wait)


class Sweeper:
    """Ends waits whose time is over, with one timer for all: one for each would cost a fifth of a call."""

    __slots__ = ("_at", "_loop", "_timer", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._at = math.inf
        self.waiting: set[AsyncWire] = set()

    def begin(self, wire: AsyncWire, limit: float) -> None:
        """The current task waits for this wire, so many seconds at most."""
        wire.begin(self._loop.time() + limit)
        self.waiting.add(wire)
        if wire.due < self._at:
            self._come(wire.due)

    def end(self, wire: AsyncWire) -> None:
        """It waits no longer."""
        self.waiting.discard(wire)

    def stop(self) -> None:
        """Leaves nothing in the loop."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at = None, math.inf

    def _come(self, at: float) -> None:
        self.stop()
        self._timer, self._at = self._loop.call_at(at, self._sweep), at

    def _sweep(self) -> None:
        self.stop()
        now = self._loop.time() + 0.001  # a timer may fire within its clock's resolution before its time
        for wire in self.waiting:
            if wire.due <= now:
                wire.expire()
        first = min((wire.due for wire in self.waiting), default=math.inf)
        if first < math.inf:
            self._come(first)
