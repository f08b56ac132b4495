"""Questions: one job, a page of jobs, counts, who works. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skep import scripts
from skep.core.call import Arg, Call
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.record import unpack


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


def expect(keys: Keys, lives: Sequence[tuple[str, int]], *, ms: int) -> Call[tuple[bytes, list[Ending | None]]]:
    """Somebody waits for these lives: gives where in `answers` to read on, and the endings that are known already."""

    def read(reply: Sequence[Any]) -> tuple[bytes, list[Ending | None]]:
        return reply[0], [None if not end else Ending(end[0].decode(), end[1]) for end in reply[1:]]

    args: list[Arg] = [ms, *(part for life in lives for part in life)]
    return Call(scripts.expect, keys.all, args, read, laned=False)


@dataclass(frozen=True, slots=True)
class Feed:
    """Entries of the event stream: numbers of the last and the oldest entry, and some, as id and flat fields."""

    last: int
    oldest: int
    entries: list[tuple[bytes, list[bytes]]]


def feed(keys: Keys, *, after: int, count: int = 64, size: int = 262_144) -> Call[Feed]:
    """Entries behind that number, at most so many or about so many bytes, at least one if there is any."""

    def read(reply: Sequence[Any]) -> Feed:
        return Feed(reply[0], reply[1], [(entry[0], entry[1]) for entry in reply[2]])

    return Call(scripts.feed, keys.all, (after, count, size), read, laned=False)


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
