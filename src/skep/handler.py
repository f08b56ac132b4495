"""What a queue can run: its handlers by task, and what becomes of their jobs' data and results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias
from weakref import WeakSet

import msgspec

from skep.core.codec import encode
from skep.core.job import JobError, JobRecord, Known
from skep.core.limits import MAX_RESULT, check_label
from skep.core.options import JobOptions
from skep.core.parameters import Parameters, result_reader
from skep.core.record import Record
from skep.core.retry import Backoff, Chooser
from skep.core.states import JobState
from skep.errors import InvalidOption, PayloadTooLarge, ResultTooLarge

ExecutorName: TypeAlias = Literal["thread", "process"]
Errors: TypeAlias = tuple[type[BaseException], ...]

NULL = b"null"
FAILURE = "on_failure"
FAILURE_OPTIONS: dict[str, Any] = {"retries": 100, "backoff": Backoff.exponential(10, 900)}


@dataclass(frozen=True, kw_only=True)
class Running:
    """How a handler is run, as the worker knows it.

    options       the job options of its task, of which a worker takes those that matter from the run on
    backoff       a callable `(attempt, error) -> seconds` in the place of `options.backoff`
    executor      thread or process; None: as the worker says
    concurrency   so many of its jobs at once in a worker; None: as the worker says
    store_result  False: what it returns is dropped
    retry_on      only these errors are worth a retry; none named: all
    fail_on       these errors are final
    aliases       former names of parameters
    """

    options: JobOptions = field(default_factory=JobOptions)
    backoff: Chooser | None = None
    executor: ExecutorName | None = None
    concurrency: int | None = None
    store_result: bool = True
    retry_on: Errors = ()
    fail_on: Errors = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.executor not in (None, "thread", "process"):
            raise InvalidOption("executor", self.executor, "'thread', 'process' or None")
        if self.concurrency is not None and not _is_number_of_runs(self.concurrency):
            raise InvalidOption("concurrency", self.concurrency, "a whole number of one or more, or None")
        if self.backoff is not None and not callable(self.backoff):
            raise InvalidOption("backoff", self.backoff, "a Backoff, or a callable (attempt, error) -> seconds")
        for name in ("retry_on", "fail_on"):
            kinds = getattr(self, name)
            if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
                raise InvalidOption(name, kinds, "a tuple of exception classes, such as (ConnectionError,)")


def _is_number_of_runs(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


class Handler:
    """A function and how it is run: a name, which is its task, and what `Running` explains.

    `name` "" is the handler of the whole queue. `wants_job`: the function gets the job itself instead of arguments.
    """

    wants_job = False

    def __init__(self, name: str, function: Callable[..., Any], running: Running) -> None:
        self.name = name
        self.function = function
        self.is_async = _is_async(function)
        self.options = running.options
        self.backoff = running.backoff
        self.executor = running.executor
        self.concurrency = running.concurrency
        self.store_result = running.store_result
        self.retry_on = running.retry_on
        self.fail_on = running.fail_on
        self.declared = function

    def bind(self, data: bytes) -> dict[str, Any]:  # noqa: ARG002 - the other kinds read it
        """What `function` is called with, by name. `InvalidData` names what does not fit."""
        return {}

    def binder(self) -> Callable[[bytes], dict[str, Any]]:
        """What does the same as `bind` for one job after the other."""
        return self.bind

    def encode(self, result: Any) -> bytes:
        """A result as JSON. What cannot be written is `InvalidData` or `ResultTooLarge`: no retry would mend it."""
        if result is None or not self.store_result:
            return NULL
        try:
            return encode(result, "result", MAX_RESULT)
        except PayloadTooLarge as error:
            raise ResultTooLarge(error.size, error.limit) from error

    @cached_property
    def read_result(self) -> Callable[[bytes], Any]:
        """Reads a result as the return annotation of the function says."""
        return result_reader(self.declared)


class QueueHandler(Handler):
    """The handler of the whole queue: `function(job)` for every job without a task."""

    wants_job = True


class TaskHandler(Handler):
    """A function that gets the job's data as its arguments."""

    def __init__(self, name: str, function: Callable[..., Any], running: Running) -> None:
        super().__init__(name, function, running)
        self.parameters = Parameters(name, function, running.aliases)
        self.schedule: JobOptions | None = None
        self.unique: bool | tuple[str, ...] = False
        self.window: int | None = None

    def bind(self, data: bytes) -> dict[str, Any]:
        """The arguments in a job's data, as annotations say. `InvalidData` names the parameter that does not fit."""
        return self.parameters.read(data)

    def binder(self) -> Callable[[bytes], dict[str, Any]]:
        """Without looking the parameters up each time; annotations that nobody can tell yet are told with each job."""
        try:
            return self.parameters.read
        except InvalidOption:
            return self.bind


class FailureHandler(Handler):
    """A function that gets a failed job, as it ended, and its error."""

    def __init__(
        self, name: str, function: Callable[..., Any], running: Running, show: Callable[[JobRecord, bool], Any]
    ) -> None:
        super().__init__(name, function, running)
        # Its own parameters may be called as one likes.
        self.function = partial(_call_by_place, function)
        self._show = show

    def bind(self, data: bytes) -> dict[str, Any]:
        """The failed job and its error."""
        record = read_failed(data)
        return {"job": self._show(record, self.is_async), "error": record.error}


def _call_by_place(function: Callable[..., Any], job: Any, error: Any) -> Any:
    return function(job, error)


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called, its method is asked
    return inspect.iscoroutinefunction(inspect.unwrap(function)) or inspect.iscoroutinefunction(call)


class _Failed(msgspec.Struct):
    """The failed job as the server hands it to its failure handler."""

    id: str
    life: int
    task: str
    name: str | None
    data: msgspec.Raw
    meta: msgspec.Raw
    priority: int
    attempts: int
    failures: int
    stalls: int
    timeouts: int
    created: int
    due: int
    finished: int
    began: int | None = None
    error: JobError | None = None


_read_failed = msgspec.json.Decoder(_Failed).decode


def read_failed(data: bytes, queue: str = "") -> JobRecord:
    """The job that a failure handler is told of, as it ended."""
    job = _read_failed(data)
    options: dict[str, Any] = {"priority": job.priority, "name": job.name or False}
    options["meta"] = False if job.meta == NULL else bytes(job.meta).decode()
    head = Record(job.created, job.due, job.life, job.task, options, bytes(job.data))
    counts = {name: getattr(job, name) for name in ("attempts", "failures", "stalls", "timeouts", "began")}
    error = job.error or JobError(type="Unknown")
    return JobRecord(queue, job.id, head, JobState.FAILED, Known(**counts), finished=job.finished, error=error)


class Registry:
    """The handlers of a queue in this process, by task. A queue and its twin share one, under the queue's name.

    `version` grows with every handler that is added: a worker that runs already learns of it.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._handlers: dict[str, Handler] = {}
        self.version = 0
        self.lifespan: Callable[..., Any] | None = None
        registries.add(self)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def add(self, handler: Handler) -> None:
        """Makes it the handler of its task, in the place of one that was there."""
        self._handlers[handler.name] = handler
        self.version += 1

    def find(self, task: str) -> Handler | None:
        """Who runs jobs of this task; "" are those without one."""
        return self._handlers.get(task)

    def names(self) -> list[str]:
        """All tasks that are known here, failure handlers and "" included."""
        return list(self._handlers)

    def failure_tasks(self) -> dict[str, bool]:
        """What the setting `on_failure` says: tasks that have a failure handler, "*" for the queue's own."""
        found = (name for name in self._handlers if name == FAILURE or name.startswith(f"{FAILURE}:"))
        return {name.partition(":")[2] or "*": True for name in found}


registries: WeakSet[Registry] = WeakSet()
"""All of this process: where a child process finds the handler that it is to run."""


def task_name(name: object, function: Callable[..., Any]) -> str:
    """What a task is called: by its function, if nobody says otherwise."""
    called = name if name is not None else getattr(function, "__name__", None)
    if called == "<lambda>" or called is None:
        raise InvalidOption("name", called, "a name, which this function has not: @queue.task('name')")
    told = check_label("name", called)
    if told == FAILURE or told.startswith(f"{FAILURE}:"):
        raise InvalidOption("name", told, f"a name that does not begin with {FAILURE!r}, which failure handlers have")
    return told


def exceptions(kinds: type[BaseException] | Iterable[type[BaseException]]) -> Errors:
    """One class of exceptions, or several."""
    return (kinds,) if isinstance(kinds, type) else tuple(kinds)
