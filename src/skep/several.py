"""Waiting for several jobs, of one queue or of many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from skep.acts import seconds
from skep.core.terms import Duration
from skep.job import Job
from skep.link import Link
from skep.views import Ending

R = TypeVar("R")

Ended: TypeAlias = tuple[Job[R], Future[Ending]]


class Waited(NamedTuple, Generic[R]):
    """Jobs that have ended, and those that have not, both in the order in which they were given."""

    done: list[Job[R]]
    not_done: list[Job[R]]


def as_completed(jobs: Iterable[Job[R]], timeout: Duration | None = None) -> Iterator[Job[R]]:
    """Jobs as they end, each once; `job.result()` then tells at once how. `TimeoutError` when the time is over.

    In asynchronous code: `asyncio.as_completed([job.result() for job in jobs])`.
    """
    all_of_them, limit = list(jobs), seconds("timeout", timeout)
    until = None if limit is None else time.monotonic() + limit
    ended = SimpleQueue[Ended[R]]()
    with ExitStack() as stack:
        for link, some in _by_link(all_of_them):
            link.check(twin="asyncio.as_completed([job.result() for job in jobs])")
            promises = stack.enter_context(link.results.expecting([(job.id, job.life) for job in some]))
            for job, promise in zip(some, promises, strict=True):
                promise.add_done_callback(partial(_tell, ended, job))
        for left in range(len(all_of_them), 0, -1):
            try:
                job, promise = ended.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except Empty:
                raise TimeoutError(f"{left} of {len(all_of_them)} jobs have not ended in time") from None
            job._ending = promise.result()
            yield job


def wait(jobs: Iterable[Job[R]], timeout: Duration | None = None) -> Waited[R]:
    """Waits until all have ended, or the time is over: those that have, and those that have not.

    In asynchronous code: `asyncio.wait` with tasks of `job.result()`.
    """
    all_of_them = list(jobs)
    ended: set[int] = set()
    try:
        ended.update(map(id, as_completed(all_of_them, timeout)))
    except TimeoutError:
        pass  # what there is no time for is told as not done
    done = [job for job in all_of_them if id(job) in ended]
    return Waited(done, [job for job in all_of_them if id(job) not in ended])


def _by_link(jobs: Iterable[Job[Any]]) -> list[tuple[Link, list[Job[Any]]]]:
    found: dict[int, tuple[Link, list[Job[Any]]]] = {}
    for job in jobs:
        found.setdefault(id(job._link), (job._link, []))[1].append(job)
    return list(found.values())


def _tell(ended: SimpleQueue[Ended[R]], job: Job[R], promise: Future[Ending]) -> None:
    ended.put((job, promise))
