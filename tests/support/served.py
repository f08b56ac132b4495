"""A queue made by hand: handlers, and adds that go through the lifecycle, for tests of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from skep import lifecycle, views
from skep.core.call import Arg, Call
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.options import JobOptions
from skep.drafts import Template
from skep.handler import FailureHandler, QueueHandler, Registry, Running, TaskHandler
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.views import Counts

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

PATIENCE = 15.0


def until(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What it gives once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: it is {found!r}")
        time.sleep(0.005)


class Served:
    """What a worker takes for a queue."""

    def __init__(
        self, name: str, url: str, *, priority: int = 40, defaults: JobOptions | None = None, **connection: Any
    ) -> None:
        self.name = name
        self.keys = Keys(name)
        self.connection = Connection(url, **connection)
        self.registry = Registry()
        self.priority = priority
        self.defaults = defaults or JobOptions()
        self.settings_in_code: Mapping[str, Arg] = {}
        self.closed = False
        self.store = Store(self.connection)

    def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        return self.store.send(call)

    def task(self, name: str | None = None, *, options: JobOptions | None = None, **running: Any) -> Callable[[F], F]:
        """Makes a function the handler of a task, by default of its own name."""

        def add(function: F) -> F:
            how = Running(options=options or JobOptions(), **running)
            self.registry.add(TaskHandler(name or function.__name__, function, how))
            return function

        return add

    def handler(self, function: F) -> F:
        """Makes a function the handler of the whole queue."""
        self.registry.add(QueueHandler("", function, Running()))
        return function

    def on_failure(self, function: F) -> F:
        """Makes a function the failure handler of the queue."""
        handler = FailureHandler("on_failure", function, Running(), lambda record, _: record)
        self.registry.add(handler)
        return function

    def add(self, task: str | None = None, data: Any = None, /, **options: Any) -> str:
        """The id of a job that was added."""
        return self.add_many([data], task, **options)[0]

    def add_many(self, items: list[Any], task: str | None = None, /, **options: Any) -> list[str]:
        """The ids of jobs that were added, in order."""
        template = Template.of(JobOptions(task=task, **options).terms)
        drafts = [template.draft(msgspec.json.encode({} if task and data is None else data)) for data in items]
        self.send(lifecycle.upsert(self.keys, drafts))
        return [draft.id for draft in drafts]

    def look(self, id: str) -> JobRecord:
        """A job as it stands."""
        [record] = self.send(views.look(self.keys, [id]))
        assert record is not None, id
        return record

    def known(self, id: str) -> bool:
        """Whether there is such a job."""
        return self.send(views.look(self.keys, [id]))[0] is not None

    def status(self, id: str) -> str:
        """Where a job stands."""
        return self.look(id).status.value

    def counts(self) -> Counts:
        """How many jobs stand where."""
        return self.send(views.counts(self.keys))

    def ended(self, id: str) -> JobRecord:
        """A job when it has ended."""
        until(lambda: self.status(id) in ("succeeded", "failed", "cancelled"))
        return self.look(id)

    def result(self, id: str) -> Any:
        """What the handler of a job returned."""
        record = self.ended(id)
        assert record.result is not None, record.error
        return msgspec.json.decode(record.result)

    def tally(self, id: str) -> tuple[int, int, int, int]:
        """Attempts, failures, stalls and timeouts."""
        known = self.look(id).known
        return known.attempts, known.failures, known.stalls, known.timeouts

    def lines(self, id: str) -> list[tuple[str, str]]:
        """Level and text of a job's log lines."""
        return [(level, text) for _, level, text in self.send(views.lines(self.keys, id))[1]]
