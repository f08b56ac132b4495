"""Who tells functions of events on a loop: `listening.py` with `await`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from types import TracebackType
from typing import Any, Self

from skep import reading
from skep.alink import AsyncLink
from skep.core.events import RawEvent
from skep.errors import QueueClosed, ServerUnavailable, SkepError
from skep.event import shown
from skep.listeners import Course
from skep.reading import WAIT
from skep.views import Mark

log = logging.getLogger("skep")

PAUSE = 1.0
"""Seconds between attempts to reach a server that is away."""


class AsyncListener:
    """Tells the functions of a queue of its events, beside the program, until the end of the `async with` block.

    What happens within the block is told before it ends. What a function raises ends the listening, and is raised at
    the end of the block: a reader with a name is told of that event again when it begins anew.
    """

    def __init__(self, link: AsyncLink, reader: str | None) -> None:
        self._link = link
        self._course = Course(link.keys, reader)
        self._task: asyncio.Task[None] | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._until: int | None = None

    async def run(self) -> None:
        """In this task, until something is raised."""
        await self._link.run(self._course.begin())
        await self._go()

    async def __aenter__(self) -> Self:
        await self._link.run(self._course.begin())
        self._task = asyncio.create_task(self._go_beside(), name=f"skep listener of {self._link.keys.name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._until = (await self._link.run(reading.begin(self._link.keys, None))).seq
        except SkepError:
            self._until = 0  # the server is away, or the queue is closed: nothing more can be told
        if self._waiting is not None:
            self._waiting.cancel()
        if self._task is not None:
            [ended] = await asyncio.gather(self._task, return_exceptions=True)
            if ended is not None and error is None:
                raise ended

    async def _go_beside(self) -> None:
        try:
            await self._go()
        except QueueClosed:
            pass
        except Exception:
            log.exception("listening to queue %r has ended", self._link.keys.name)
            raise

    async def _go(self) -> None:
        course = self._course
        while self._until is None or course.place.seq < self._until:
            try:
                found = await self._link.run(course.more())
                await self._tell(found)
                await self._link.run(course.note())
                if not found and self._until is None:
                    await self._wait()
            except ServerUnavailable as error:
                log.warning("%s; the listener goes on when it is back", error)
                await asyncio.sleep(PAUSE)

    async def _tell(self, found: list[RawEvent]) -> None:
        course = self._course
        try:
            for event in found:
                for function in self._link.listeners.of(event):
                    given = function(shown(event, course.keys.name))
                    if inspect.isawaitable(given):
                        await given
                course.told = Mark(event.seq, event.at)
        except BaseException:
            await self._link.run(course.note())
            raise
        course.told = course.place

    async def _wait(self) -> None:
        keys, place = self._course.keys, self._course.place
        listens = self._link.store.listen(reading.to_wait_for(keys, place), WAIT, count=1)
        self._waiting = asyncio.ensure_future(listens)
        try:
            await asyncio.wait([self._waiting])
        finally:
            self._waiting.cancel()
        if not self._waiting.cancelled():
            self._waiting.result()
