"""What is told of a queue as a whole: who works, which schedules it has, how much there is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skep import pages, views
from skep.core.call import Flow
from skep.core.job import JobRecord
from skep.core.keys import Keys


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that holds a lease on the queue.

    name        how it is called in leases and events
    lease_left  seconds after which it counts as dead, unless it renews
    told        what it told of itself: host, pid, version, slots
    """

    name: str
    lease_left: float
    told: Mapping[str, Any]

    @property
    def host(self) -> str | None:
        """The name of its machine."""
        return self.told.get("host")

    @property
    def pid(self) -> int | None:
        """Its process there."""
        return self.told.get("pid")


@dataclass(frozen=True, slots=True)
class Stats:
    """How much there is to do.

    waiting     jobs that may be taken now
    running     jobs that run
    workers     workers that hold a lease
    oldest_age  seconds for which the job that has waited longest could have been taken; None: none waits
    """

    waiting: int
    running: int
    workers: int
    oldest_age: float | None


def workers(keys: Keys) -> Flow[list[WorkerInfo]]:
    """Who works on a queue."""
    leases: list[views.WorkerLease] = yield views.workers(keys)
    return [WorkerInfo(each.name, each.left / 1000, each.info) for each in leases]


def schedules(keys: Keys) -> Flow[list[JobRecord]]:
    """The series that are declared in code, as they stand, by their tasks."""
    ids, cursor = list[str](), "0"
    while True:
        cursor, found = yield views.schedules(keys, cursor)
        ids += found
        if cursor == "0":
            break
    known = yield from pages.look(keys, sorted(set(ids)))
    return [each for each in known if each is not None]


def stats(keys: Keys) -> Flow[Stats]:
    """How much there is to do."""
    found: views.Load = yield views.load(keys)
    age = None if found.oldest is None else max(0, found.now - found.oldest) / 1000
    return Stats(found.waiting, found.running, found.workers, age)
