"""Questions: one job, a page of jobs, counts, who works. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from skep import scripts
from skep.core.call import Arg, Call, Script
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.record import unpack
from skep.core.states import JobState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs stand where, at one instant."""

    waiting: int
    scheduled: int
    retrying: int
    held: int
    active: int
    blocked: int
    succeeded: int
    failed: int
    cancelled: int

    @property
    def total(self) -> int:
        """All jobs that the server knows, finished ones that are still kept included."""
        unfinished = self.waiting + self.scheduled + self.retrying + self.held + self.active + self.blocked
        return unfinished + self.succeeded + self.failed + self.cancelled


def counts(keys: Keys) -> Call[Counts]:
    """How many jobs stand where."""
    return Call(scripts.counts, keys.all, (), lambda reply: Counts(*reply), laned=False)


def now(keys: Keys) -> Call[int]:
    """The time by the server's clock."""
    return Call(scripts.now, keys.all, (), int, laned=False)


def settings(keys: Keys) -> Call[dict[str, str]]:
    """What is kept of the queue itself: its settings, and whether it is paused."""

    def read(reply: Sequence[bytes]) -> dict[str, str]:
        words = [word.decode(errors="replace") for word in reply]
        return dict(zip(words[::2], words[1::2], strict=True))

    return Call(scripts.settings, keys.all, (), read, laned=False)


def look(keys: Keys, ids: Sequence[str]) -> Call[list[JobRecord | None]]:
    """All that is known of these ids, in order; None for an unknown one. Of the first ones, if all is too much."""

    def read(reply: Sequence[Any]) -> list[JobRecord | None]:
        return [
            None if parts is None else JobRecord.read(keys.name, id, parts)
            for id, parts in zip(ids, reply, strict=False)
        ]

    return Call(scripts.look, keys.all, tuple(ids), read, laned=False)


def page(keys: Keys, where: str, cursor: str, count: int) -> Call[tuple[str, list[str]]]:
    """A slice of the ids in one place: a status, `jobs` for all, or `name:` and a label. Cursor "0" begins and ends."""

    def read(reply: Sequence[Any]) -> tuple[str, list[str]]:
        return reply[0].decode(), list(dict.fromkeys(id.decode() for id in reply[1]))

    return Call(scripts.page, keys.all, (where, cursor, count), read, laned=False)


def lines(keys: Keys, id: str, *, after: int = 0, count: int = 200) -> Call[tuple[int, list[tuple[int, str, str]]]]:
    """Log lines of a job behind the one with that number: the last one's number (0: none), and time, level, text."""

    def read(reply: Sequence[Any]) -> tuple[int, list[tuple[int, str, str]]]:
        split = (line.split(b" ", 2) for line in reply[1] if line is not None)
        return reply[0], [(int(at), level.decode(), text.decode()) for at, level, text in split]

    return Call(scripts.lines, keys.all, (id, after, count), read, laned=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a life ended, as those who wait for it hear: its status, and its result, error or reason."""

    status: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """Where in `answers` to read on; of each life its number (another's, if it was merged), its ending or progress."""

    last: str
    lives: list[tuple[int, Ending | None]]


def expect(keys: Keys, lives: Sequence[tuple[str, int]], *, ms: int, progress: bool = False) -> Call[Expected]:
    """Somebody waits for these lives, and maybe to hear of their progress."""

    def read(reply: Sequence[Any]) -> Expected:
        found = ((life, Ending(end[0].decode(), end[1]) if end else None) for life, *end in reply[1:])
        return Expected(reply[0].decode(), list(found))

    args: list[Arg] = [ms, int(progress), *(part for life in lives for part in life)]
    return Call(scripts.expect, keys.all, args, read, laned=False)


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """A worker of the queue: its name, what it told of itself, and for how many milliseconds its lease still is."""

    name: str
    left: int
    info: dict[str, Any]


def workers(keys: Keys) -> Call[list[WorkerLease]]:
    """Who works here: those whose lease has not ended."""

    def read(reply: Sequence[Any]) -> list[WorkerLease]:
        now = reply[0]
        found = [WorkerLease(name.decode(), end - now, unpack(info) if info else {}) for name, end, info in reply[1:]]
        return [each for each in found if each.left > 0]

    return Call(scripts.workers, keys.all, (), read, laned=False)


def schedules(keys: Keys, cursor: str) -> Call[tuple[str, list[str]]]:
    """Ids of series that are declared in code, out of a slice of all jobs. Cursor "0" begins and ends."""

    def read(reply: Sequence[Any]) -> tuple[str, list[str]]:
        return reply[0].decode(), [id.decode() for id in reply[1]]

    return Call(scripts.schedules, keys.all, (cursor,), read, laned=False)


@dataclass(frozen=True, slots=True)
class Load:
    """How much there is to do, and when the job was due that has waited longest. Times are milliseconds."""

    now: int
    waiting: int
    running: int
    workers: int
    oldest: int | None


def load(keys: Keys) -> Call[Load]:
    """How much there is to do."""
    return Call(scripts.stats, keys.all, (), lambda reply: Load(*reply), laned=False)


def _command(name: str, key: str, args: tuple[Arg, ...], decode: Callable[[Any], T]) -> Call[T]:
    return Call(Script(name, "", ""), (key,), args, decode, laned=False)


def enrol(keys: Keys) -> Call[None]:
    """Names the queue among those of its server."""
    return _command("SADD", keys.queues, (keys.name,), lambda _: None)


def enrolled(keys: Keys) -> Call[list[str]]:
    """The names of all queues that have the same prefix."""
    return _command("SMEMBERS", keys.queues, (), lambda reply: [name.decode() for name in reply])


def strike(keys: Keys) -> Call[None]:
    """Takes the name of a queue away that has no keys."""
    return _command("SREM", keys.queues, (keys.name,), lambda _: None)


def served(keys: Keys) -> Call[bool]:
    """Whether a worker has ever joined the queue."""
    return _command("HGET", keys.all[0], ("served",), lambda reply: reply is not None)


@dataclass(frozen=True, slots=True)
class Feed:
    """Entries of the event stream, each as its id and its flat fields."""

    entries: list[tuple[bytes, list[bytes]]]


def feed(keys: Keys, *, after: int, count: int = 64, size: int = 262_144) -> Call[Feed]:
    """Entries behind that number, at most so many or about so many bytes, at least one if there is any."""

    def read(reply: Sequence[Any]) -> Feed:
        return Feed([(entry[0], entry[1]) for entry in reply])

    return Call(scripts.feed, keys.all, (after, count, size), read, laned=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the event stream: the number of an event, and its time in milliseconds, by which it is known again."""

    seq: int
    at: int | None


@dataclass(frozen=True, slots=True)
class Edges:
    """Where the event stream begins and ends, and for each number that was asked for the last event of its entry.

    `last` is Mark(0, 0) and `oldest` 0 where there are no events; `oldest` is the first number that is still accounted
    for. `history` is the queue's setting.
    """

    history: str
    last: Mark
    oldest: int
    marks: list[Mark | None]


def edges(keys: Keys, numbers: Sequence[int] = ()) -> Call[Edges]:
    """Where the event stream begins and ends, and which entries stand for these numbers."""

    def read(reply: Sequence[Any]) -> Edges:
        marks = [None if not found else Mark(*found) for found in reply[4:]]
        # Of an empty stream it tells nothing about single numbers.
        marks += [None] * (len(numbers) - len(marks))
        return Edges(reply[0].decode() or "all", Mark(reply[1], reply[2]), reply[3], marks)

    return Call(scripts.edges, keys.all, tuple(numbers), read, laned=False)


def readers(keys: Keys) -> Call[dict[str, Mark]]:
    """Who is registered to read events, and the last one that each has done with."""

    def read(reply: Sequence[bytes]) -> dict[str, Mark]:
        told = (value.decode().split(" ") for value in reply[1::2])
        marks = (Mark(int(seq), int(at[0]) if at else None) for seq, _, *at in told)
        return dict(zip((name.decode() for name in reply[::2]), marks, strict=True))

    return Call(scripts.readers, keys.all, (), read, laned=False)


@dataclass(frozen=True, slots=True)
class Walked:
    """Jobs as columns. `letters` are those of their status, `beside` the lease, the reason or the ending of each."""

    cursor: str
    ids: list[bytes]
    records: list[bytes]
    letters: str
    beside: list[bytes]
    counts: list[bytes | None] | None
    twins: list[bytes | None] | None


LETTERS = {
    "w": JobState.WAITING,
    "d": JobState.SCHEDULED,
    "r": JobState.RETRYING,
    "h": JobState.HELD,
    "a": JobState.ACTIVE,
    "s": JobState.SUCCEEDED,
    "f": JobState.FAILED,
    "c": JobState.CANCELLED,
}


def walk(
    keys: Keys, cursor: str = "0", *, count: int = 300, ids: Sequence[str] = (), whole: bool = True
) -> Call[Walked]:
    """A slice of all jobs, or these; not `whole`: without data, results and errors. Cursor "0" begins and ends."""

    def read(reply: Sequence[Any]) -> Walked:
        counts, twins = (*reply[5:], None, None)[:2]
        return Walked(reply[0].decode(), reply[1], reply[2], reply[3].decode(), reply[4], counts, twins)

    return Call(scripts.walk, keys.all, (cursor, count, int(whole), *ids), read, laned=False)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write: how many rows it has, how many were added, updated, blocked or ignored so far."""

    rows: int
    added: int
    updated: int
    blocked: int
    ignored: int
    at: int
    done: bool


def written(keys: Keys, write: str) -> Call[Written | None]:
    """What became of a write; None: it was never decided, or is forgotten."""

    def read(reply: bytes | None) -> Written | None:
        if reply is None:
            return None
        known = unpack(reply)
        numbers = {name: known[name] for name in ("rows", "added", "updated", "blocked", "ignored", "at")}
        return Written(**numbers, done=not known["left"])

    return Call(scripts.written, keys.all, (write,), read, laned=False)
