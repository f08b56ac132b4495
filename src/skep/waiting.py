"""Who waits for which life to end, and what that means to him. Pure: `results.py` and `aresults.py` read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from skep.core.job import JobError, read_error
from skep.errors import JobCancelled, JobFailed, JobNotFound, StaleJob
from skep.views import Ending, Expected

R = TypeVar("R")
Life: TypeAlias = tuple[str, int]
"""An id and one of its lives."""
Hear: TypeAlias = Callable[[bytes], object]
"""Is given progress, as JSON."""

EXPECT_MS = 60_000
"""So long the server remembers that somebody waits."""
ASK_AGAIN = 30.0
"""Seconds after which it is told again, and asked for what it may have said to nobody."""
LINGER = 5.0
"""Seconds for which a reader stays when nobody waits: the next one need not start it."""
MOST_IN_A_TRIP = 500


NOBODY_KNOWS: tuple[int, int] = (1 << 64, 0)
"""No entry comes behind this one."""


class Promise(Protocol):
    """A future, of threads or of a loop."""

    def done(self) -> bool:
        """Whether it was told, or nobody listens."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Tells it."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Tells that there is nothing to tell."""
        ...


class Waiter:
    """One who waits for a life, maybe to `hear` of its progress; merged into another one, he waits for that."""

    __slots__ = ("hear", "life", "promise", "since")

    def __init__(self, life: Life, promise: Promise, hear: Hear | None = None) -> None:
        self.life = life
        self.promise = promise
        self.hear = hear
        self.since = NOBODY_KNOWS


class Waiters:
    """All who wait for lives of one queue."""

    def __init__(self) -> None:
        self._by_life: dict[Life, list[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_life)

    def add(self, waiter: Waiter) -> None:
        """One more."""
        self._by_life.setdefault(waiter.life, []).append(waiter)

    def discard(self, waiter: Waiter) -> None:
        """This one waits no longer."""
        waiting = self._by_life.get(waiter.life, [])
        if waiter in waiting:
            waiting.remove(waiter)
            if not waiting:
                del self._by_life[waiter.life]

    def lives(self, *, progress: bool) -> list[Life]:
        """What they wait for: the lives of whose progress somebody wants to hear, or the others."""
        return [life for life, waiting in self._by_life.items() if any(each.hear for each in waiting) == progress]

    def move(self, life: Life, into: Life) -> None:
        """Who waited for the one now waits for the other."""
        for waiter in self._by_life.pop(life, ()):
            waiter.life = into
            self.add(waiter)

    def _hear(self, number: str, life: Life, text: bytes) -> None:
        """Progress is told to those who want to hear of it, unless it was told to them when they came."""
        for waiter in self._by_life.get(life, ()):
            if waiter.hear is not None and position(number) > waiter.since:
                waiter.hear(text)

    def end(self, life: Life, ending: Ending) -> None:
        """A life has ended: they are told."""
        for waiter in self._by_life.pop(life, ()):
            if not waiter.promise.done():
                waiter.promise.set_result(ending)

    def take(self, number: str, life: Life, told: Ending) -> Life | None:
        """An entry of the stream of answers. Another life to be asked for, where they now wait for that."""
        if told.status == "progress":
            self._hear(number, life, told.text)
        elif told.status == "merged":
            into = (life[0], int(told.text))
            self.move(life, into)
            return into
        else:
            self.end(life, told)
        return None

    def expected(self, lives: Sequence[Life], found: Expected) -> None:
        """What the server said when it was asked for them."""
        for life, (number, told) in zip(lives, found.lives, strict=True):
            now = (life[0], number)
            if now != life:
                self.move(life, now)
            self._come(now, found.last, told)
            if told is not None and told.status != "progress":
                self.end(now, told)

    def _come(self, life: Life, last: str, told: Ending | None) -> None:
        """Who came to hear of progress hears how far it is; what is in the stream up to there is older."""
        for waiter in self._by_life.get(life, ()):
            if waiter.hear is not None and waiter.since is NOBODY_KNOWS:
                waiter.since = position(last)
                if told is not None and told.status == "progress":
                    waiter.hear(told.text)

    def fail(self, error: BaseException) -> None:
        """Nobody can be told any more."""
        for waiting in self._by_life.values():
            for waiter in waiting:
                if not waiter.promise.done():
                    waiter.promise.set_exception(error)
        self._by_life.clear()


def trips(lives: Sequence[Life]) -> Iterator[Sequence[Life]]:
    """Lives in parts that one call asks for."""
    return (lives[first : first + MOST_IN_A_TRIP] for first in range(0, len(lives), MOST_IN_A_TRIP))


def answers(reply: Sequence[Any]) -> Iterator[tuple[str, Life, Ending]]:
    """Entries of the stream of answers: number, whose end, and which."""
    entries: Iterable[Any] = reply[0][1]
    for number, fields in entries:
        told = dict(zip(fields[::2], fields[1::2], strict=True))
        life = (told[b"id"].decode(), int(told[b"life"]))
        yield number.decode(), life, Ending(told[b"status"].decode(), told[b"text"])


def position(number: str) -> tuple[int, int]:
    """The number of an entry, to be compared."""
    ms, _, count = number.partition("-")
    return int(ms), int(count)


def outcome(life: Life, ending: Ending, read: Callable[[bytes], R]) -> R:
    """The result of a life that ended like this, or the error that says why there is none."""
    id, number = life
    match ending.status:
        case "succeeded" if ending.text:
            return read(ending.text)
        case "failed":
            error = read_error(ending.text) or JobError(message="its error was replaced by a later life's")
            raise JobFailed(id, error)
        case "cancelled":
            raise JobCancelled(id, ending.text.decode(errors="replace"))
        case "removed":
            raise JobNotFound(id)
        case _:
            raise StaleJob(id, number)
