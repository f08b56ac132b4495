"""A handle of one job for asynchronous code: `job.py` with `await`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from skep import acts, lifecycle, reading
from skep.acts import LogLine
from skep.adding import AddedOne
from skep.alink import AsyncLink
from skep.core.call import Call
from skep.core.codec import decode
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.options import ChangeOptions
from skep.core.terms import Duration
from skep.core.unset import UNSET
from skep.drafts import Template
from skep.errors import ServerUnavailable
from skep.event import Event, shown
from skep.handler import Registry
from skep.jobfields import JobFields
from skep.lifecycle import Target
from skep.listeners import Decorator, EventHandler
from skep.reading import WAIT, Story
from skep.views import Ending

R_co = TypeVar("R_co", covariant=True)


async def add(link: AsyncLink, template: Template, data: bytes) -> AsyncJob[Any]:
    """A job that is added; where the server does not answer, `await error.settle()` gives it."""
    try:
        return AsyncJob(link, await link.add(template, data))
    except ServerUnavailable as error:
        raise error.told_as(partial(AsyncJob, link)) from error


class AsyncJob(JobFields[R_co]):
    """A job of a queue. It acts on its own life, and waits for that one: `StaleJob` says that it is over.

    The handle of a series acts on the series.
    """

    __slots__ = ("_link",)

    def __init__(self, link: AsyncLink, source: JobRecord | AddedOne) -> None:
        super().__init__(source)
        self._link = link

    @property
    def _keys(self) -> Keys:
        return self._link.keys

    @property
    def _registry(self) -> Registry:
        return self._link.registry

    async def result(
        self,
        timeout: Duration | None = None,  # noqa: ASYNC109 - as `Job.result` has it
        on_progress: Callable[[Any], object] | None = None,
    ) -> R_co:
        """What its handler returned, when it has. Raises JobFailed, JobCancelled, JobNotFound or TimeoutError.

        `on_progress` is called with what its runs report meanwhile; what it gives is awaited, if it can be.
        """
        seconds = acts.seconds("timeout", timeout)
        if self._ending is None:
            self._ending = await self._wait(seconds, on_progress)
        if self._ending is None:
            where = self._link.connection.safe_url
            raise TimeoutError(await self._link.run(acts.stands(self._keys, self.id, self.life, where)))
        result: R_co = self._outcome(self._ending)
        return result

    async def _wait(self, seconds: float | None, on_progress: Callable[[Any], object] | None) -> Ending | None:
        if on_progress is None:
            return await self._link.results.wait((self.id, self.life), seconds)

        async def hear(text: bytes) -> None:
            given = on_progress(decode(text))
            if inspect.isawaitable(given):
                await given

        return await self._link.results.wait((self.id, self.life), seconds, hear)

    async def refresh(self) -> AsyncJob[R_co]:
        """Asks the server how it stands now; gives itself."""
        self._now(await self._link.run(acts.look(self._keys, self.id, self.life)))
        return self

    async def cancel(
        self, *, reason: str = "on request", keep: bool | Duration | None = None, active: bool = True
    ) -> bool:
        """Cancels it, or asks its run to stop. `keep`: how long it stays then; `active=False` leaves a run alone."""
        return await self._act(partial(lifecycle.cancel, reason=reason, keep=acts.kept(keep), active=active))

    async def hold(self, *, reason: str = "by hand") -> bool:
        """Sets it aside until it is released, if it waits."""
        return await self._act(partial(lifecycle.hold, reason=reason))

    async def release(self) -> bool:
        """Lets it go on, if it is held."""
        return await self._act(lifecycle.release)

    async def promote(self) -> bool:
        """Lets it run now, if it waits for its time."""
        return await self._act(lifecycle.promote)

    async def remove(self) -> bool:
        """Takes it away, unless it runs."""
        return await self._act(lifecycle.remove)

    async def redact(self) -> bool:
        """Blanks data, result, error and logs, if it has finished."""
        return await self._act(lifecycle.redact)

    async def retry(self) -> bool:
        """Runs it again, if it has finished: a new life, which this handle then stands for."""
        record = await self._link.run(acts.revive(self._keys, self.id, self.life))
        if record is not None:
            self._now(record)
        return record is not None

    async def update(self, *, data: Any = UNSET, **options: Unpack[ChangeOptions]) -> bool:
        """Changes what is named. While it runs data and task are `JobActive`; when it has finished meta can change."""
        return await self._link.run(acts.update_life(self._keys, self.id, self.life, data, options))

    async def log(self, text: str, level: str = "info") -> bool:
        """Notes a line on it, from anywhere."""
        return await self._link.run(
            acts.log(self._keys, self.id, text, level, self.record.head.options.get("max_logs"))
        )

    async def logs(self) -> AsyncIterator[LogLine]:
        """Its log lines in order, over all runs, as far as they are kept."""
        after: int | None = 0
        while after is not None:
            lines, after = await self._link.run(acts.lines(self._keys, self.id, after))
            for line in lines:
                yield line

    async def events(self) -> AsyncIterator[Event]:
        """The events of its life, as far as they are kept; those to come too, until it has ended."""
        place, story = await self._link.run(reading.birth(self._keys, self.id, self.life)), Story(self.id, self.life)
        rests = is_over = False
        while not story.is_over:
            if rests:
                is_over = await self._link.run(reading.is_over(self._keys, story))
            place, found = await self._link.run(reading.more(self._keys, place))
            for event in story.of(found):
                yield shown(event, self.queue)
            if not found and is_over:
                return
            if not found and rests:
                await self._link.store.listen(reading.to_wait_for(self._keys, place), WAIT, count=1)
            rests = not found

    @overload
    def on(self, type: str, function: EventHandler, /) -> EventHandler: ...
    @overload
    def on(self, type: str, function: None = None, /) -> Decorator: ...
    def on(self, type: str, function: EventHandler | None = None, /) -> Any:
        """Has `def f(event)` told of events of its life, while `queue.listen` runs: `job.on("progress", f)`."""
        return self._link.listeners.add(type, function, (self.id, self.life))

    async def _act(self, act: Callable[[Keys, Sequence[Target]], Call[list[str]]]) -> bool:
        return await self._link.run(acts.on_life(partial(act, self._keys), self.id, self.life))
