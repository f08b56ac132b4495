"""What may be said of a handler when it is declared, and what it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypedDict, TypeVar

from skep.ajob import AsyncJob
from skep.core.duration import to_ms
from skep.core.job import JobRecord
from skep.core.options import JobOptions, OnConflict
from skep.core.parameters import Parameters
from skep.core.retry import Backoff, Chooser
from skep.core.terms import Duration, Instant, Priority
from skep.errors import InvalidOption
from skep.handler import (
    FAILURE,
    FAILURE_OPTIONS,
    ExecutorName,
    FailureHandler,
    QueueHandler,
    Registry,
    Running,
    TaskHandler,
    exceptions,
    task_name,
)
from skep.job import Job
from skep.link import Link

F = TypeVar("F", bound=Callable[..., Any])


class HandlerOptions(TypedDict, total=False):
    """How a handler's jobs are run: what `JobOptions` says of retries, backoff, timeout, keep and max_logs, and

    backoff       also a callable `(attempt, error) -> seconds`
    executor      "process" runs it in child processes, "thread" in threads
    concurrency   so many at once in a worker
    store_result  False: what it returns is dropped
    retry_on      only these errors are worth a retry
    fail_on       these errors are final
    """

    retries: int | None
    backoff: Backoff | Chooser | None
    timeout: Duration | None
    keep: bool | Duration | None
    max_logs: int | None
    executor: ExecutorName | None
    concurrency: int | None
    store_result: bool
    retry_on: type[BaseException] | Iterable[type[BaseException]]
    fail_on: type[BaseException] | Iterable[type[BaseException]]


class TaskOptions(HandlerOptions, total=False):
    """The same of a task, what is said of its jobs when they are added, and

    unique    True, or names of parameters: an add with equal arguments is ignored while one is unfinished
    window    and for so long from its add, also after its end
    aliases   former names of parameters: {"old": "new"}
    every, cron, tz   a schedule: it runs by itself
    """

    name: str | None
    priority: Priority | int | str | None
    delay: Duration | None
    expires: Instant | timedelta | None
    meta: Any
    on_conflict: OnConflict | None
    unique: bool | Iterable[str]
    window: Duration | None
    aliases: Mapping[str, str]
    every: Duration | None
    cron: str | None
    tz: str | None


RUNNING = frozenset({"executor", "concurrency", "store_result", "retry_on", "fail_on", "aliases"})
SCHEDULE = frozenset({"every", "cron", "tz"})
UNIQUE = frozenset({"unique", "window"})


def _running(options: Mapping[str, Any], known: type, what: str) -> Running:
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")
    said = {name: value for name, value in options.items() if name in RUNNING}
    for name in ("retry_on", "fail_on"):
        if name in said:
            said[name] = exceptions(said[name])
    job = {name: value for name, value in options.items() if name not in RUNNING | SCHEDULE | UNIQUE}
    if callable(job.get("backoff")) and not isinstance(job["backoff"], Backoff):
        said["backoff"] = job.pop("backoff")
    return Running(options=JobOptions(**job), **said)


def declare_task(
    registry: Registry, name: str | None, function: Callable[..., Any], options: Mapping[str, Any]
) -> TaskHandler:
    """Makes a function the handler of a task."""
    running = _running(options, TaskOptions, "task")
    handler = TaskHandler(task_name(name, function), function, running)
    if SCHEDULE & options.keys():
        handler.schedule = JobOptions(**{each: options[each] for each in SCHEDULE & options.keys()})
    handler.unique = _unique(options.get("unique", False), handler.parameters)
    if options.get("window") is not None:
        if not handler.unique:
            raise InvalidOption("window", options["window"], "effect beside `unique`")
        handler.window = to_ms("window", options["window"])
    registry.add(handler)
    return handler


def _unique(wanted: object, parameters: Parameters) -> bool | tuple[str, ...]:
    if isinstance(wanted, bool):
        return wanted
    names = tuple(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else ()
    if not names or not set(names) <= set(parameters.names):
        raise InvalidOption("unique", wanted, f"True, or some of the parameters {', '.join(parameters.names)}")
    return names


def declare_handler(registry: Registry, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Makes a function the handler of the whole queue."""
    registry.add(QueueHandler("", function, _running(options, HandlerOptions, "handler")))


def declare_failure_handler(link: Link, task: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Makes a function the failure handler of a task, or with "" of the queue."""

    def show(record: JobRecord, is_async: bool) -> Job[Any] | AsyncJob[Any]:
        return AsyncJob(link.aio, record) if is_async else Job(link, record)

    running = _running({**FAILURE_OPTIONS, **options}, HandlerOptions, FAILURE)
    name = f"{FAILURE}:{task}" if task else FAILURE
    link.registry.add(FailureHandler(name, function, running, show))


def decorator(declare: Callable[[F, Mapping[str, Any]], Any], function: F | None, options: Mapping[str, Any]) -> Any:
    """A decorator that is used bare, or with options."""

    def decorate(function: F) -> Any:
        return declare(function, options)

    return decorate if function is None else decorate(function)
