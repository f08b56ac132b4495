"""A trip to the server as a value: what to run, and how to read the answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Arg = str | bytes | int
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script with its shared pieces resolved. Its sha is its version: two releases never share one.

    Without a sha it is a command of the server, by its name: it is sent with keys and arguments alone.
    """

    name: str
    source: str
    sha: str


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One trip to the server. It may be sent twice: the second changes nothing and is answered alike.

    `args` are the script's own: the transport puts `now` and `call` (lane and number, if laned) before them.
    `laned` calls change something and go in a lane; reads, claims and renewals do without.
    `again` calls name what they change so exactly (a run, its worker and its claim) that they may be said
    again even in a new lane.
    """

    script: Script
    keys: tuple[str, ...]
    args: Sequence[Arg]
    decode: Callable[[Any], T_co]
    laned: bool = True
    again: bool = False


Flow = Generator[Call[Any], Any, T]
"""Several trips: yields calls, is sent their decoded answers, returns its own."""


def alone(call: Call[T]) -> Flow[T]:
    """The flow of a single trip."""
    answer: T = yield call
    return answer
