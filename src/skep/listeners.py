"""Functions that want to be told of events, by what they want to hear; and how far who tells them has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from skep import lifecycle, reading
from skep.core.call import Flow
from skep.core.events import TYPES, RawEvent
from skep.core.keys import Keys
from skep.errors import InvalidOption
from skep.event import Event
from skep.views import Mark
from skep.waiting import Life

EventHandler: TypeAlias = Callable[[Event], Any]
H = TypeVar("H", bound=EventHandler)

SAY_AGAIN = 3600.0
"""Seconds after which a reader says anew how far it is, though nothing came: registrations lapse."""


class Decorator(Protocol):
    """Notes a function, and gives it back."""

    def __call__(self, function: H, /) -> H:
        """The function."""
        ...


class Listeners:
    """The functions of a queue in this process. A queue and its twin share them."""

    def __init__(self) -> None:
        self._by_type: dict[str, list[tuple[Life | None, EventHandler]]] = {}

    def add(self, type: str, function: EventHandler | None, life: Life | None = None) -> Any:
        """One more, of all jobs or of one life; without a function, what notes one."""
        if type not in TYPES.values():
            raise InvalidOption("type", type, f"one of {', '.join(TYPES.values())}")

        def note(function: H) -> H:
            self._by_type.setdefault(type, []).append((life, function))
            return function

        return note if function is None else note(function)

    def of(self, event: RawEvent) -> list[EventHandler]:
        """Who wants to hear of this."""
        wanted = self._by_type.get(event.type, ())
        return [function for life, function in wanted if life in (None, (event.job, event.life))]


class Course:
    """How far a listener has read, and how far its functions were told: with a name, the server knows it too."""

    def __init__(self, keys: Keys, name: str | None) -> None:
        self.keys = keys
        self.name = name
        self.place = self.told = self._noted = Mark(0, None)
        self._again = time.monotonic() + SAY_AGAIN

    def begin(self) -> Flow[None]:
        """From where it stopped, or from now."""
        self.place = self.told = self._noted = yield from reading.resume(self.keys, self.name)

    def more(self) -> Flow[list[RawEvent]]:
        """Some events that nobody was told of yet."""
        self.place, found = yield from reading.more(self.keys, self.place)
        return found

    def note(self) -> Flow[None]:
        """What all were told is done with, and need not be kept for this reader."""
        if self.name is None or (self.told == self._noted and time.monotonic() < self._again):
            return
        yield lifecycle.reader(self.keys, self.name, self.told.seq, at=self.told.at)
        self._noted, self._again = self.told, time.monotonic() + SAY_AGAIN
