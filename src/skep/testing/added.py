"""Whether a job was added, and what was added instead."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias, overload

from skep.ajob import AsyncJob
from skep.aqueue import AsyncQueue
from skep.base import BaseQueue
from skep.core.codec import decode, encode
from skep.handler import TaskHandler
from skep.job import Job
from skep.jobfields import JobFields
from skep.queue import Queue
from skep.task import BaseTask

MOST_TOLD = 20

Wanted: TypeAlias = "BaseTask[..., Any] | str | None"


@overload
def assert_added(queue: Queue, task: Wanted, /, **arguments: Any) -> Job[Any]: ...
@overload
def assert_added(queue: AsyncQueue, task: Wanted, /, **arguments: Any) -> Coroutine[Any, Any, AsyncJob[Any]]: ...
def assert_added(queue: Queue | AsyncQueue, task: Wanted, /, **arguments: Any) -> Any:
    """The newest job of this task in the queue, whatever its status, that has these arguments; it may have others.

    `task`: a task or its name; None: jobs of the queue's handler, of which the arguments are keys of the data.
    Where there is none, the AssertionError tells what there is. Of an `AsyncQueue` it is `await assert_added(...)`.
    """
    named = task.name if isinstance(task, BaseTask) else task
    if isinstance(queue, AsyncQueue):
        return _assert_added(queue, named, arguments)
    found = list(queue.jobs())
    return _newest(queue, named, arguments, found) or _refuse(queue, named, arguments, found)


async def _assert_added(queue: AsyncQueue, task: str | None, arguments: Mapping[str, Any]) -> AsyncJob[Any]:
    found = [each async for each in queue.jobs()]
    met: AsyncJob[Any] | None = _newest(queue, task, arguments, found)
    return met or _refuse(queue, task, arguments, found)


def _newest(queue: BaseQueue, task: str | None, arguments: Mapping[str, Any], found: Iterable[Any]) -> Any:
    wanted = decode(encode(arguments))
    met = [each for each in found if each.task == task and _has(_arguments(queue, each), wanted)]
    return max(met, key=lambda each: (each.created_at, each.id), default=None)


def _arguments(queue: BaseQueue, job: JobFields[Any]) -> Any:
    """What its handler is called with: parameters that were not given have their defaults."""
    data, handler = job.data, queue.registry.find(job.task or "")
    if isinstance(handler, TaskHandler) and isinstance(data, dict):
        return decode(encode(handler.parameters.with_defaults(data)))
    return data


def _has(data: Any, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    return isinstance(data, dict) and all(name in data and data[name] == wanted[name] for name in wanted)


def _refuse(queue: BaseQueue, task: str | None, arguments: Mapping[str, Any], found: Iterable[Any]) -> NoReturn:
    jobs = sorted(found, key=lambda each: (each.task != task, each.created_at, each.id))
    lines = [f"  {_call(each.task, each.data)}, {each.status}" for each in jobs[:MOST_TOLD]]
    if len(jobs) > MOST_TOLD:
        lines.append(f"  and {len(jobs) - MOST_TOLD:,} more")
    there = "\n".join(["; it has:", *lines]) if lines else "; it has no jobs at all"
    raise AssertionError(f"no {_call(task, dict(arguments))} was added to queue {queue.name!r}{there}")


def _call(task: str | None, data: Any) -> str:
    if task is None:
        return f"job with {data!r}"
    if not isinstance(data, dict):
        return f"{task}({data!r})"
    return f"{task}({', '.join(f'{name}={value!r}' for name, value in data.items())})"
