"""What both transports share and needs no I/O: lanes and fences, packed calls, what follows a failure."""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import hiredis

from skep import scripts
from skep.core.call import Arg, Call, Script
from skep.core.lanes import GivenUp, Lane, Step, Trip, lane_name
from skep.errors import QueueClosed, ServerUnavailable
from skep.store import replies
from skep.store.connect import Connection
from skep.store.dial import Address
from skep.store.url import safe

W = TypeVar("W")

Clock = Callable[[], int]
"""A given clock: milliseconds since the epoch. Without one, scripts ask the server for the time."""

# A clock that goes on while the machine sleeps: a call must not be said again after a night.
_WATCH = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Seconds after which a connection that rested is looked at before its use, for half the cost of a call.
LONG_REST = 0.5

# Retries shorten an answer's time to what is left for them, but not below this many seconds.
LEAST_TIMEOUT = 0.5

# Calls of so many arguments at most share their packed beginning; longer ones are of any length.
FEW_ARGS = 16

FENCE_UNANSWERED = "the fence of a call that was given up is still unanswered"

pack = cast("Callable[[tuple[Arg, ...]], bytes]", hiredis.pack_command)
"""A command as bytes."""

TIME = pack(("TIME",))
EMPTY = len(pack(("", ""))) - len(pack(("",)))


def watch() -> float:
    """Seconds, for measuring how long something took."""
    return time.clock_gettime(_WATCH)


def here_ms() -> int:
    """This machine's clock: milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Side(Generic[W]):
    """What a client holds of one queue: lanes at rest, fences that are due, idle connections."""

    __slots__ = ("fencing", "heads", "idle", "key", "lanes", "node", "owed")

    def __init__(self, key: str, idle: list[W], fencing: Any) -> None:
        self.key = key
        self.idle = idle
        self.fencing = fencing  # a lock: one caller at a time asks for fences
        self.node: Address | None = None
        self.lanes: list[Lane] = []
        self.owed: list[GivenUp] = []
        self.heads: dict[tuple[str, int], tuple[tuple[str, ...], bytes]] = {}

    def pack(self, call: Call[Any], now: Arg, said: str) -> bytes:
        """The call as bytes."""
        if not call.script.sha:
            return pack((call.script.name, *call.keys, *call.args))
        args = (now, said, *call.args)
        if len(args) > FEW_ARGS:
            return pack((*_words(call), *args))
        known = self.heads.get((call.script.sha, len(args)))
        if known is None or known[0] is not call.keys:
            # To pack forty keys each time is an eighth of a short call. A packed command is its number of
            # words and then its words: without the empty ones this begins every command of this length.
            head = pack((*_words(call), *("",) * len(args)))[: -EMPTY * len(args)]
            known = self.heads[call.script.sha, len(args)] = (call.keys, head)
        tail = pack(args)
        return known[1] + tail[tail.index(b"\n") + 1 :]

    def give_up(self, trip: Trip) -> GivenUp | None:
        """Lays the lane of a trip that is over back, or owes its fence: a copy may still arrive."""
        lane, trip.lane = trip.lane, None
        if lane is None or trip.fence is not None:
            return None
        if not (trip.loose or trip.out):
            self.lanes.append(lane)
            return None
        given = GivenUp(trip, lane, scripts.fence)
        self.owed.append(given)
        return given


def _words(call: Call[Any]) -> tuple[Arg, ...]:
    return ("EVALSHA", call.script.sha, len(call.keys), *call.keys)


class Transport(Generic[W]):
    """A store's settings and what it holds of each queue."""

    def __init__(self, connection: Connection, clock: Clock | None = None) -> None:
        self.connection = connection
        self._clock = clock
        # WAIT must end before its own reply is given up; 0 would be for ever.
        wait = max(1, int(1000 * min(connection.retry_for, connection.timeout / 2)))
        replicas = connection.wait_replicas
        self._wait = pack(("WAIT", replicas, wait)) if replicas else b""
        self._sides: dict[str, Side[W]] = {}
        self._idle: dict[Address | None, list[W]] = {None: []}
        self._dialer: Any = None
        self._where = safe(connection.url) if connection.url is not None else "the server"
        self._closed = False

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, here or in another process, has lanes and sockets of its own.
        return (type(self), (self.connection, self._clock))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    def _lock(self) -> Any:
        raise NotImplementedError

    def _begin_anew(self) -> None:
        """In the child of a fork: the parent goes on with its lanes and sockets."""
        self._sides, self._idle = {}, {None: []}

    def _look_anew(self, side: Side[W]) -> None:
        """The next connection is made to where the server is then."""
        if self._dialer is not None and self._dialer.spread:
            side.node, side.idle = None, []
        if self.connection.url is None:
            self._dialer = None

    def _settle(self, maybe_done: bool, given: GivenUp | None, timeout: float | None) -> Any:
        raise NotImplementedError

    def _side(self, keys: tuple[str, ...]) -> Side[W]:
        if self._closed:
            raise QueueClosed(replies.queue_of(keys))
        key = keys[0] if keys else ""
        side = self._sides.get(key)
        return side or self._sides.setdefault(key, Side(key, self._idle[None], self._lock()))

    def _new_lane(self, time_of_server: list[bytes]) -> Lane:
        birth = self._clock() // 1000 if self._clock else int(time_of_server[0])
        name = lane_name(socket.gethostname(), os.getpid(), birth, secrets.token_hex(4))
        return Lane(name, copies=bool(self._wait))

    def _pack(self, side: Side[W], trip: Trip) -> bytes:
        packed = side.pack(trip.call, self._clock() if self._clock else b"", trip.said)
        return packed + self._wait if self._awaits_copies(trip) else packed

    def _awaits_copies(self, trip: Trip) -> bool:
        """Whether two replies come: the call's, and how many replicas have what it wrote."""
        return bool(self._wait) and trip.lane is not None

    def _limit(self, trip: Trip) -> float | None:
        """Seconds for this attempt's answer, where they are not the usual ones."""
        if trip.until is None:
            return self.connection.timeout + trip.patience if trip.patience else None
        left = max(trip.until - watch(), LEAST_TIMEOUT)
        return min(self.connection.timeout, left) + trip.patience

    def _answered(self, side: Side[W], trip: Trip, reply: Any) -> None:
        """Lays its lane back, unless its answer would be lost with this server."""
        trip.out = False
        lane, trip.lane = trip.lane, None
        if lane is None:
            return
        if trip.copies < self.connection.wait_replicas and reply[:1] == b"=":
            # No fence is due, but the lane is kept for whoever asks until there are enough copies.
            trip.doubt = True
            raise self._unavailable(trip, self._too_few(trip), GivenUp(trip, lane, scripts.fence))
        side.lanes.append(lane)

    def _too_few(self, trip: Trip) -> replies.TooFewCopies:
        wanted = self.connection.wait_replicas
        return replies.TooFewCopies(f"{trip.copies} replicas have it, with wait_replicas={wanted}")

    def _after(self, side: Side[W], trip: Trip, error: Exception) -> float:
        """How long to wait after an attempt that ended with this; raises if there is no other."""
        if replies.answered(error):
            trip.out = False
        now, fate = watch(), replies.fate(error)
        step = trip.step(fate, now, self.connection.retry_for)
        if step is Step.REFUSE:
            side.give_up(trip)
            raise replies.refusal(error) from error
        if step is Step.GIVE_UP:
            raise self._unavailable(trip, error, trip.fence or side.give_up(trip)) from error
        if step is Step.NEW_LANE:
            trip.leave_lane()
        return trip.pause(now, random.random())  # noqa: S311 - only to keep clients apart

    def _unavailable(self, trip: Trip, why: BaseException, given: GivenUp | None) -> ServerUnavailable:
        text = replies.no_answer(self._where, trip, why, watch(), known=given is not None)
        return ServerUnavailable(text, maybe_done=trip.maybe_done, ask=partial(self._settle, trip.maybe_done, given))


def plain(words: Sequence[Arg], began: float) -> Trip:
    """A trip of a plain command."""
    trip = Trip(Call(Script(str(words[0]), "", ""), (), tuple(words), bytes, laned=False), began)
    trip.packed = pack(tuple(words))
    return trip


def to_listen(keys: Sequence[str] | Mapping[str, str], timeout: float, count: int | None) -> tuple[Arg, ...]:
    """The command that blocks until a list has an element, or a stream an entry after the given one."""
    if not isinstance(keys, Mapping):
        # 0 would block for ever.
        return ("BLPOP", *keys, f"{max(timeout, 0.001):.3f}")
    some: tuple[Arg, ...] = () if count is None else ("COUNT", count)
    return ("XREAD", *some, "BLOCK", max(int(timeout * 1000), 1), "STREAMS", *keys, *keys.values())


def to_load(trip: Trip) -> bytes:
    """The command after which the server knows the trip's script; what EVAL brings, it may forget again."""
    return pack(("SCRIPT", "LOAD", trip.call.script.source))
