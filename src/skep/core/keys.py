"""Every key of one queue. The docstrings of this class are the data layout."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMES = (
    "queue",
    "jobs",
    "waiting10",
    "waiting20",
    "waiting30",
    "waiting40",
    "waiting50",
    "waiting60",
    "skips",
    "scheduled",
    "retrying",
    "held",
    "aside",
    "active",
    "blocked",
    "stops",
    "states",
    "progress",
    "logs",
    "succeeded",
    "failed",
    "cancelled",
    "pruning_succeeded",
    "pruning_failed",
    "pruning_cancelled",
    "timers",
    "windows",
    "names",
    "leases",
    "workers",
    "claims",
    "dead",
    "lanes",
    "awaited",
    "answers",
    "events",
    "weights",
    "readers",
    "wake",
    "staged",
    "writes",
    "moving",
)
"""The keys of a queue in the order in which every script is given them; scripts know them by these names."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one queue: `PREFIX:{QUEUE}` and `PREFIX:{QUEUE}:NAME`. The braces keep them in one cluster slot.

    No key is ever made from an id, a label or a task, so that every script can declare all it may touch.
    All times are whole milliseconds since the epoch, on the server's clock.

    queue      hash: counters (`seq`), the clock (`clock`, `renewed`), flags (`paused`), the timer duty, how many idle
               workers are still asked for a job set aside (`asking`), settings
    jobs       hash: id -> record (see `core/record.py`), whatever the job's state
    waiting10 ... waiting60   lists: ids that may be taken now, by priority, first in first out
    skips      hash: priority and id -> number of entries of that list that no longer count
    scheduled  sorted set: id by due time, not failed yet
    retrying   sorted set: id by due time, failed before
    held       hash: id -> reason
    aside      sorted set: task and id of jobs held because no worker knew their task
    active     hash: id -> lease: worker, claim, start
    blocked    hash: id -> the second job of an active id, and what it would do to a waiting one
    stops      hash: id -> a stop request for its run
    states     hash: id -> counts and last error; only of jobs whose first run was not their last
    progress   hash: id -> what the last run reported
    logs       hash: lines by number and id, and first and last number by id
    succeeded, failed, cancelled   hashes: id -> how it ended
    pruning_succeeded, ...   lists: ids in the order in which they ended, in chunks, for the queue's own retention
    timers     sorted set: kind and id by the time something is to happen: expiry, own retention, windows
    windows    hash: id -> until when an equal add is ignored
    names      sorted set: label and id
    leases     sorted set: worker by the end of its lease
    workers    hash: worker -> what it told when it joined
    claims     hash: worker -> number and ids of its last claim
    dead       hash: worker whose lease ended -> how its runs end: stalled or returned
    lanes      hash: lane -> number, time and answer of its last call
    awaited    hash: id -> until when somebody waits for its result
    answers    stream: ends of jobs that somebody waits for
    events     stream: all that happened, numbered without a gap
    weights    list: every so many bytes, the number of an event and the bytes written up to it
    readers    hash: reader -> the number of the last event it has committed
    wake       list: at most one marker that there is something to take
    staged     hash: rows written from Spark that nothing has decided yet
    writes     hash: write -> its counts, and which staged rows are still to be moved
    moving     list: writes whose rows are being moved
    """

    name: str
    prefix: str = "skep"
    all: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        base = self.base
        named = (base if name == "queue" else f"{base}:{name}" for name in NAMES)
        object.__setattr__(self, "all", tuple(named))

    @property
    def base(self) -> str:
        """The part that all keys of the queue begin with."""
        return f"{self.prefix}:{{{self.name}}}"

    @property
    def queues(self) -> str:
        """The set of names of all queues with this prefix, in a slot of its own."""
        return f"{self.prefix}:queues"

    @property
    def wake(self) -> str:
        """The list whose marker wakes an idle worker."""
        return f"{self.base}:wake"

    @property
    def answers(self) -> str:
        """The stream of ends that somebody waits for."""
        return f"{self.base}:answers"

    @property
    def events(self) -> str:
        """The stream of all that happened."""
        return f"{self.base}:events"
