"""A handle of one job: what it tells, what can be done with it, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from skep import acts, lifecycle, reading
from skep.acts import LogLine
from skep.adding import AddedOne
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
from skep.link import Link
from skep.listeners import Decorator, EventHandler
from skep.reading import WAIT, Story
from skep.views import Ending

R_co = TypeVar("R_co", covariant=True)


def add(link: Link, template: Template, data: bytes) -> Job[Any]:
    """A job that is added; where the server does not answer, `error.settle()` gives it."""
    try:
        return Job(link, link.add(template, data))
    except ServerUnavailable as error:
        raise error.told_as(partial(Job, link)) from error


class Job(JobFields[R_co]):
    """A job of a queue. It acts on its own life, and waits for that one: `StaleJob` says that it is over.

    The handle of a series acts on the series.
    """

    __slots__ = ("_link",)
    _TWIN = "a job of queue.aio: await (await queue.aio.get(job.id)).{}(...)"

    def __init__(self, link: Link, source: JobRecord | AddedOne) -> None:
        super().__init__(source)
        self._link = link

    @property
    def _keys(self) -> Keys:
        return self._link.keys

    @property
    def _registry(self) -> Registry:
        return self._link.registry

    def result(self, timeout: Duration | None = None, on_progress: Callable[[Any], object] | None = None) -> R_co:
        """What its handler returned, when it has. Raises JobFailed, JobCancelled, JobNotFound or TimeoutError.

        `on_progress` is called with what its runs report meanwhile.
        """
        seconds = acts.seconds("timeout", timeout)
        if self._ending is None:
            self._ending = self._wait(seconds, on_progress)
        if self._ending is None:
            where = self._link.connection.safe_url
            raise TimeoutError(self._link.run(acts.stands(self._keys, self.id, self.life, where)))
        result: R_co = self._outcome(self._ending)
        return result

    def _wait(self, seconds: float | None, on_progress: Callable[[Any], object] | None) -> Ending | None:
        if on_progress is None:
            return self._link.results.wait((self.id, self.life), seconds)
        return self._link.results.wait((self.id, self.life), seconds, lambda text: on_progress(decode(text)))

    def refresh(self) -> Job[R_co]:
        """Asks the server how it stands now; gives itself."""
        self._now(self._link.run(acts.look(self._keys, self.id, self.life)))
        return self

    def cancel(self, *, reason: str = "on request", keep: bool | Duration | None = None, active: bool = True) -> bool:
        """Cancels it, or asks its run to stop. `keep`: how long it stays then; `active=False` leaves a run alone."""
        return self._act(partial(lifecycle.cancel, reason=reason, keep=acts.kept(keep), active=active))

    def hold(self, *, reason: str = "by hand") -> bool:
        """Sets it aside until it is released, if it waits."""
        return self._act(partial(lifecycle.hold, reason=reason))

    def release(self) -> bool:
        """Lets it go on, if it is held."""
        return self._act(lifecycle.release)

    def promote(self) -> bool:
        """Lets it run now, if it waits for its time."""
        return self._act(lifecycle.promote)

    def remove(self) -> bool:
        """Takes it away, unless it runs."""
        return self._act(lifecycle.remove)

    def redact(self) -> bool:
        """Blanks data, result, error and logs, if it has finished."""
        return self._act(lifecycle.redact)

    def retry(self) -> bool:
        """Runs it again, if it has finished: a new life, which this handle then stands for."""
        record = self._link.run(acts.revive(self._keys, self.id, self.life))
        if record is not None:
            self._now(record)
        return record is not None

    def update(self, *, data: Any = UNSET, **options: Unpack[ChangeOptions]) -> bool:
        """Changes what is named. While it runs data and task are `JobActive`; when it has finished meta can change."""
        return self._link.run(acts.update_life(self._keys, self.id, self.life, data, options))

    def log(self, text: str, level: str = "info") -> bool:
        """Notes a line on it, from anywhere."""
        return self._link.run(acts.log(self._keys, self.id, text, level, self.record.head.options.get("max_logs")))

    def logs(self) -> Iterator[LogLine]:
        """Its log lines in order, over all runs, as far as they are kept."""
        after: int | None = 0
        while after is not None:
            lines, after = self._link.run(acts.lines(self._keys, self.id, after))
            yield from lines

    def events(self) -> Iterator[Event]:
        """The events of its life, as far as they are kept; those to come too, until it has ended."""
        place, story = self._link.run(reading.birth(self._keys, self.id, self.life)), Story(self.id, self.life)
        rests = is_over = False
        while not story.is_over:
            if rests:
                is_over = self._link.run(reading.is_over(self._keys, story))
            place, found = self._link.run(reading.more(self._keys, place))
            yield from (shown(event, self.queue) for event in story.of(found))
            if not found and is_over:
                return
            if not found and rests:
                self._link.store.listen(reading.to_wait_for(self._keys, place), WAIT, count=1)
            rests = not found

    @overload
    def on(self, type: str, function: EventHandler, /) -> EventHandler: ...
    @overload
    def on(self, type: str, function: None = None, /) -> Decorator: ...
    def on(self, type: str, function: EventHandler | None = None, /) -> Any:
        """Has `def f(event)` told of events of its life, while `queue.listen` runs: `job.on("progress", f)`."""
        return self._link.listeners.add(type, function, (self.id, self.life))

    def _act(self, act: Callable[[Keys, Sequence[Target]], Call[list[str]]]) -> bool:
        return self._link.run(acts.on_life(partial(act, self._keys), self.id, self.life))
