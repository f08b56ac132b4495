"""The one reader of a loop for results of a queue: a task, for as long as somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from skep import views
from skep.core.keys import Keys
from skep.errors import QueueClosed
from skep.store.aio import AsyncStore
from skep.views import Ending
from skep.waiting import ASK_AGAIN, EXPECT_MS, LINGER, Hear, Life, Waiter, Waiters, answers, position, trips

AsyncHear: TypeAlias = Callable[[bytes], Awaitable[object]]


class AsyncResults:
    """Tells who waits for a life how it ended. The server is asked once, and then says it by itself."""

    def __init__(self, store: AsyncStore, keys: Keys) -> None:
        self._store = store
        self._keys = keys
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters = Waiters()
        self._reader: asyncio.Task[None] | None = None
        self._begins_at = "0-0"

    @asynccontextmanager
    async def expecting(
        self, lives: Sequence[Life], hear: Hear | None = None
    ) -> AsyncGenerator[list[asyncio.Future[Ending]]]:
        """Promises of how these lives end, good within the block; until then `hear` is given their progress."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._waiters, self._reader = loop, Waiters(), None
        futures: list[asyncio.Future[Ending]] = [loop.create_future() for _ in lives]
        waiters = [Waiter(life, future, hear) for life, future in zip(lives, futures, strict=True)]
        for waiter in waiters:
            self._waiters.add(waiter)
        try:
            await self._ask(lives, progress=hear is not None)
            yield futures
        finally:
            for waiter in waiters:
                self._waiters.discard(waiter)

    async def wait(self, life: Life, seconds: float | None, hear: AsyncHear | None = None) -> Ending | None:
        """How a life ended; None: not in so many seconds. Meanwhile `hear` is given its progress, in this task."""
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        news = asyncio.Queue[bytes | None]()
        async with self.expecting([life], None if hear is None else news.put_nowait) as [promise]:
            promise.add_done_callback(lambda _: news.put_nowait(None))
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        text = await news.get()
                except TimeoutError:
                    return None
                if text is None or hear is None:
                    return promise.result()
                await hear(text)

    async def _ask(self, lives: Sequence[Life], *, progress: bool) -> None:
        """What is over already is told at once; of the others the reader hears."""
        for part in trips(lives):
            while not self._is_read_from(await self._look(part, progress=progress)):
                pass

    async def _look(self, lives: Sequence[Life], *, progress: bool) -> str:
        expected = await self._store.send(views.expect(self._keys, lives, ms=EXPECT_MS, progress=progress))
        self._waiters.expected(lives, expected)
        return expected.last

    async def _take(self, number: str, life: Life, told: Ending) -> None:
        into = self._waiters.take(number, life, told)
        if into is not None:
            await self._look([into], progress=False)

    async def _look_again(self) -> None:
        for progress in (False, True):
            for part in trips(self._waiters.lives(progress=progress)):
                await self._look(part, progress=progress)

    def _is_read_from(self, last: str) -> bool:
        """Whether the reader reads all that comes behind this entry. Where somebody waits, there is one."""
        if self._reader is not None or not self._waiters:
            return position(self._begins_at) <= position(last) or not self._waiters
        self._begins_at = last
        self._reader = asyncio.get_running_loop().create_task(self._read(), name=f"skep results of {self._keys.name}")
        return True

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        at, asked, heard = self._begins_at, clock(), clock()
        try:
            while self._waiters or clock() - heard < LINGER:
                reply = await self._store.listen({self._keys.answers: at}, LINGER, count=500)
                for number, life, ending in answers(reply) if reply else ():
                    at = number
                    await self._take(number, life, ending)
                if self._waiters:
                    heard = clock()
                if clock() - asked > ASK_AGAIN:
                    asked = clock()
                    await self._look_again()
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait hear of it
            self._waiters.fail(error)
        finally:
            self._reader = None

    async def close(self) -> None:
        """Ends the reader; who waits is told."""
        reader = self._reader
        if reader is not None and self._loop is asyncio.get_running_loop():
            reader.cancel()
            await asyncio.wait([reader])
            self._waiters.fail(QueueClosed(self._keys.name))
