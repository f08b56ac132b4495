"""A queue of jobs, for code that may block."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack, overload

from skep import acts, adding, job, lifecycle, pages, reading, views, watching
from skep.acts import Ids
from skep.adding import Added
from skep.aqueue import AsyncQueue
from skep.batch import Batch
from skep.core.options import AddOptions
from skep.core.settings import Retention, SettingOptions, Settings, told
from skep.core.unset import UNSET, Unset
from skep.declaring import TaskOptions, declare_task
from skep.event import Event, shown
from skep.job import Job
from skep.listening import Listener
from skep.pages import PAGE, Page, Where, handles
from skep.reading import WAIT, Since
from skep.steering import Steering
from skep.task import CoroutineTask, P, R, Task, TaskMaker
from skep.views import Counts, Mark
from skep.watching import Stats, WorkerInfo


class Queue(Steering):
    """A queue of jobs, for code that may block: of all threads, and across a fork. `aio`: for asynchronous code."""

    @property
    def aio(self) -> AsyncQueue:
        """The same queue for asynchronous code, with the same tasks."""
        return AsyncQueue._twin_of(self)

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> CoroutineTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, called: str | None = None, /, **options: Unpack[TaskOptions]) -> TaskMaker: ...
    def task(self, called: Any = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Makes a function a task: `enqueue` adds a job that calls it. `called`: its name, else the function's."""

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            handler = declare_task(self.registry, None if callable(called) else called, function, options)
            return (CoroutineTask if handler.is_async else Task)(self._link, handler, self._shaper)

        return declare(called) if callable(called) else declare

    def add(self, data: Any = None, **options: Unpack[AddOptions]) -> Job[Any]:
        """Adds a job with any JSON as its data; `JobOptions` explains the options, `job.outcome` tells the rest."""
        return job.add(self._link, *self._shaper.one(data, options))

    def add_many(self, items: Iterable[Any], *, ids: bool = False, **common: Unpack[AddOptions]) -> Added:
        """Adds any number of jobs, in order: each item is data, or a `JobSpec`. When it ends early: `PartlyAdded`."""
        shaper = self._shaper.saying(common)
        return self._link.run(adding.add_many(self.keys, shaper.template, shaper.many, items, ids=ids))

    def collect(self) -> Batch:
        """Collects jobs that are sent together at the end of a `with` block; after an exception none is."""
        return Batch(self._link, self._shaper)

    @overload
    def get(self, ids: str) -> Job[Any] | None: ...
    @overload
    def get(self, ids: Ids) -> list[Job[Any] | None]: ...
    def get(self, ids: str | Iterable[str]) -> Any:
        """The job of an id, or those of several in their order; None for an unknown one."""
        return handles(self._link.run(pages.get(self.keys, ids)), partial(Job, self._link))

    def has(self, id: str | None = None, *, name: str | None = None) -> bool:
        """Whether there is a job of this id, or one with this label."""
        return self._link.run(pages.has(self.keys, id, name))

    def jobs(
        self, status: str | None = None, name: str | None = None, task: str | None = None, limit: int | None = None
    ) -> Iterator[Job[Any]]:
        """All jobs that match, or so many of them; best effort while they move, but one that stays put is told."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = self.page(status, name, task, limit=size, cursor=cursor)
            yield from page
            cursor, left = page.next_cursor, None if left is None else left - len(page)
            if cursor is None:
                return

    def page(
        self,
        status: str | None = None,
        name: str | None = None,
        task: str | None = None,
        *,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Some of the jobs that match, and `next_cursor` for the next ones; None: these are the last."""
        found, after = self._link.run(pages.page(self.keys, Where.of(status, name, task), limit, cursor))
        return Page([Job(self._link, record) for record in found], after)

    def events(self, since: Since = None) -> Iterator[Event]:
        """All events behind this one (a number, an event; 0: all that are kept; None: from now on), for ever.

        EventsTrimmed and HistoryForked say that the next one is not there any more, HistoryOff that none are kept.
        """
        return self._read(self._link.run(reading.begin(self.keys, since)))

    def _read(self, place: Mark) -> Iterator[Event]:
        while True:
            place, found = self._link.run(reading.more(self.keys, place))
            for event in found:
                yield shown(event, self.name)
            if not found:
                self._link.store.listen(reading.to_wait_for(self.keys, place), WAIT, count=1)

    def listen(self, reader: str | None = None) -> None:
        """Tells the functions noted by `on` of events, for ever. `reader`: a name under which it goes on next time."""
        Listener(self._link, reader).run()

    def listening(self, reader: str | None = None) -> Listener:
        """The same beside the program, within a `with` block; what happens in the block is told before it ends."""
        return Listener(self._link, reader)

    def workers(self) -> list[WorkerInfo]:
        """Who works here: all that hold a lease."""
        return self._link.run(watching.workers(self.keys))

    def schedules(self) -> list[Job[Any]]:
        """The series that are declared in code, as `@queue.task(cron=...)`, as they stand."""
        return [Job(self._link, record) for record in self._link.run(watching.schedules(self.keys))]

    def stats(self) -> Stats:
        """How much there is to do, and how long it has waited."""
        return self._link.run(watching.stats(self.keys))

    def counts(self) -> Counts:
        """How many jobs stand where, at one instant."""
        return self._link.send(views.counts(self.keys))

    def summary(self) -> Counts:
        """The same as `counts()`."""
        return self._link.send(views.counts(self.keys))

    def pause(self) -> bool:
        """No worker takes anything of this queue, wherever it is, until `resume()`. True if that is a change."""
        return self._link.send(lifecycle.pause(self.keys, wanted=True))

    def resume(self) -> bool:
        """Workers take jobs again. True if that is a change."""
        return self._link.send(lifecycle.pause(self.keys, wanted=False))

    @property
    def paused(self) -> bool:
        """Whether the queue is paused."""
        return "paused" in self._link.send(views.settings(self.keys))

    @property
    def settings(self) -> Settings:
        """The settings of the queue, as they are in the server."""
        return Settings.read(self._link.send(views.settings(self.keys)))

    def configure(self, *, retention: Retention | Unset | None = UNSET, **settings: Unpack[SettingOptions]) -> bool:
        """Writes settings of the queue, which hold for all who use it; None takes one back. True if any changed."""
        return self._link.send(lifecycle.configure(self.keys, told(retention, settings)))

    def forget_failure_handlers(self) -> bool:
        """Failed jobs are no longer told to failure handlers, until a worker starts that has some."""
        return self._link.send(lifecycle.configure(self.keys, {"on_failure": ""}))

    def upkeep(self) -> int:
        """All that time brings, now: workers do it in passing. Gives how many events that made."""
        return self._link.run(acts.upkeep(self.keys))

    def ping(self) -> None:
        """Returns when the server has answered; raises if it does not."""
        self._link.check()
        self._link.store.ping()

    def close(self) -> None:
        """Ends its connections; what it is used for later is `QueueClosed`."""
        self._blocking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
