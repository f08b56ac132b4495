"""A queue of jobs, for asynchronous code: `queue.py` with `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack, overload

from skep import acts, adding, ajob, lifecycle, pages, reading, views, watching
from skep.acts import Ids
from skep.adding import Added
from skep.ajob import AsyncJob
from skep.alistening import AsyncListener
from skep.asteering import AsyncSteering
from skep.base import BaseQueue
from skep.batch import AsyncBatch
from skep.core.options import AddOptions
from skep.core.settings import Retention, SettingOptions, Settings, told
from skep.core.unset import UNSET, Unset
from skep.declaring import TaskOptions, declare_task
from skep.event import Event, shown
from skep.pages import PAGE, Page, Where, handles
from skep.reading import WAIT, Since
from skep.task import AsyncCoroutineTask, AsyncTask, AsyncTaskMaker, P, R
from skep.views import Counts
from skep.watching import Stats, WorkerInfo


class AsyncQueue(AsyncSteering):
    """A queue of jobs, for asynchronous code: of one loop at a time, and across a fork."""

    @classmethod
    def _twin_of(cls, queue: BaseQueue) -> AsyncQueue:
        twin = object.__new__(cls)
        twin.__dict__.update(queue.__dict__)
        return twin

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncCoroutineTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, called: str | None = None, /, **options: Unpack[TaskOptions]) -> AsyncTaskMaker: ...
    def task(self, called: Any = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Makes a function a task: `enqueue` adds a job that calls it. `called`: its name, else the function's."""

        def declare(function: Callable[..., Any]) -> AsyncTask[..., Any]:
            handler = declare_task(self.registry, None if callable(called) else called, function, options)
            return (AsyncCoroutineTask if handler.is_async else AsyncTask)(self._blocking, handler, self._shaper)

        return declare(called) if callable(called) else declare

    async def add(self, data: Any = None, **options: Unpack[AddOptions]) -> AsyncJob[Any]:
        """Adds a job with any JSON as its data; `JobOptions` explains the options, `job.outcome` tells the rest."""
        return await ajob.add(self._link, *self._shaper.one(data, options))

    async def add_many(self, items: Iterable[Any], *, ids: bool = False, **common: Unpack[AddOptions]) -> Added:
        """Adds any number of jobs, in order: each item is data, or a `JobSpec`. When it ends early: `PartlyAdded`."""
        shaper = self._shaper.saying(common)
        return await self._link.run(adding.add_many(self.keys, shaper.template, shaper.many, items, ids=ids))

    def collect(self) -> AsyncBatch:
        """Collects jobs that are sent together at the end of a `with` block; after an exception none is."""
        return AsyncBatch(self._link, self._shaper)

    @overload
    async def get(self, ids: str) -> AsyncJob[Any] | None: ...
    @overload
    async def get(self, ids: Ids) -> list[AsyncJob[Any] | None]: ...
    async def get(self, ids: str | Iterable[str]) -> Any:
        """The job of an id, or those of several in their order; None for an unknown one."""
        return handles(await self._link.run(pages.get(self.keys, ids)), partial(AsyncJob, self._link))

    async def has(self, id: str | None = None, *, name: str | None = None) -> bool:
        """Whether there is a job of this id, or one with this label."""
        return await self._link.run(pages.has(self.keys, id, name))

    async def jobs(
        self, status: str | None = None, name: str | None = None, task: str | None = None, limit: int | None = None
    ) -> AsyncIterator[AsyncJob[Any]]:
        """All jobs that match, or so many of them; best effort while they move, but one that stays put is told."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = await self.page(status, name, task, limit=size, cursor=cursor)
            for job in page:
                yield job
            cursor, left = page.next_cursor, None if left is None else left - len(page)
            if cursor is None:
                return

    async def page(
        self,
        status: str | None = None,
        name: str | None = None,
        task: str | None = None,
        *,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[AsyncJob[Any]]:
        """Some of the jobs that match, and `next_cursor` for the next ones; None: these are the last."""
        found, after = await self._link.run(pages.page(self.keys, Where.of(status, name, task), limit, cursor))
        return Page([AsyncJob(self._link, record) for record in found], after)

    async def events(self, since: Since = None) -> AsyncIterator[Event]:
        """All events behind this one (a number, an event; 0: all that are kept; None: from now on), for ever.

        EventsTrimmed and HistoryForked say that the next one is not there any more, HistoryOff that none are kept.
        It begins when the first event is asked for.
        """
        place = await self._link.run(reading.begin(self.keys, since))
        while True:
            place, found = await self._link.run(reading.more(self.keys, place))
            for event in found:
                yield shown(event, self.name)
            if not found:
                await self._link.store.listen(reading.to_wait_for(self.keys, place), WAIT, count=1)

    async def listen(self, reader: str | None = None) -> None:
        """Tells the functions noted by `on` of events, for ever. `reader`: a name under which it goes on next time."""
        await AsyncListener(self._link, reader).run()

    def listening(self, reader: str | None = None) -> AsyncListener:
        """The same beside the program, within a `with` block; what happens in the block is told before it ends."""
        return AsyncListener(self._link, reader)

    async def workers(self) -> list[WorkerInfo]:
        """Who works here: all that hold a lease."""
        return await self._link.run(watching.workers(self.keys))

    async def schedules(self) -> list[AsyncJob[Any]]:
        """The series that are declared in code, as `@queue.task(cron=...)`, as they stand."""
        return [AsyncJob(self._link, record) for record in await self._link.run(watching.schedules(self.keys))]

    async def stats(self) -> Stats:
        """How much there is to do, and how long it has waited."""
        return await self._link.run(watching.stats(self.keys))

    async def counts(self) -> Counts:
        """How many jobs stand where, at one instant."""
        return await self._link.send(views.counts(self.keys))

    async def summary(self) -> Counts:
        """The same as `counts()`."""
        return await self._link.send(views.counts(self.keys))

    async def pause(self) -> bool:
        """No worker takes anything of this queue, wherever it is, until `resume()`. True if that is a change."""
        return await self._link.send(lifecycle.pause(self.keys, wanted=True))

    async def resume(self) -> bool:
        """Workers take jobs again. True if that is a change."""
        return await self._link.send(lifecycle.pause(self.keys, wanted=False))

    @property
    async def paused(self) -> bool:
        """Whether the queue is paused."""
        return "paused" in await self._link.send(views.settings(self.keys))

    @property
    async def settings(self) -> Settings:
        """The settings of the queue, as they are in the server."""
        return Settings.read(await self._link.send(views.settings(self.keys)))

    async def configure(
        self, *, retention: Retention | Unset | None = UNSET, **settings: Unpack[SettingOptions]
    ) -> bool:
        """Writes settings of the queue, which hold for all who use it; None takes one back. True if any changed."""
        return await self._link.send(lifecycle.configure(self.keys, told(retention, settings)))

    async def forget_failure_handlers(self) -> bool:
        """Failed jobs are no longer told to failure handlers, until a worker starts that has some."""
        return await self._link.send(lifecycle.configure(self.keys, {"on_failure": ""}))

    async def upkeep(self) -> int:
        """All that time brings, now: workers do it in passing. Gives how many events that made."""
        return await self._link.run(acts.upkeep(self.keys))

    async def ping(self) -> None:
        """Returns when the server has answered; raises if it does not."""
        self._link.check()
        await self._link.store.ping()

    async def close(self) -> None:
        """Ends its connections; what it is used for later is `QueueClosed`."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
