"""The blocking transport: sends calls, says them again when a reply is lost, tells what became of them."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as LateReply

from skep.core.call import Call, Flow
from skep.core.lanes import Fate, GivenUp, Trip
from skep.errors import ServerError, ServerUnavailable, SkepError
from skep.store import checks, replies
from skep.store.connect import Connection
from skep.store.dial import Dialer
from skep.store.transport import (
    FENCE_UNANSWERED,
    LONG_REST,
    TIME,
    Clock,
    Side,
    Transport,
    here_ms,
    plain,
    to_listen,
    to_load,
    watch,
)
from skep.store.wires import Wire

T = TypeVar("T")

_stores: weakref.WeakSet[Store] = weakref.WeakSet()


class Store(Transport[Wire]):
    """Sends calls, from any thread. After a fork, and as a copy, it has lanes and sockets of its own."""

    def __init__(self, connection: Connection, clock: Clock | None = None) -> None:
        super().__init__(connection, clock)
        self._dialer: Dialer | None = None
        self._stop = threading.Event()
        self._listening: set[Wire] = set()
        _stores.add(self)

    def send(self, call: Call[T]) -> T:
        """The call's answer. Its refusals are raised; no answer in time is `ServerUnavailable`."""
        side = self._side(call.keys)
        answer: T = replies.read(call, self._drive(side, Trip(call, watch())))
        return answer

    def send_many(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """The answers of calls that do not wait for one another: in their order, errors in their places.

        Each goes in a lane of its own and is said again as by `send`; which is applied first is open.
        """
        trips = [(self._side(call.keys), Trip(call, watch())) for call in calls]
        try:
            heard = self._first_attempts(trips)
            return [self._end(side, trip, got) for (side, trip), got in zip(trips, heard, strict=True)]
        except BaseException:
            for side, trip in trips:
                side.give_up(trip)
            raise

    def listen(self, keys: Sequence[str] | Mapping[str, str], timeout: float, count: int | None = None) -> Any:
        """Waits until there is something: the raw reply, or None when `timeout` seconds are over.

        `keys`: lists, of which one element is taken (a wake marker); or streams, each with the id after which
        to read, at most `count` entries. When the connection is lost while it waits for a list, a marker may
        be lost with it: it returns `[]`, and the caller looks for itself.
        """
        trip, side_keys = plain(to_listen(keys, timeout, count), watch()), tuple(keys)
        trip.patience = timeout
        while True:
            side = self._side(side_keys)
            try:
                return self._attempt(side, trip)
            except (RedisError, OSError) as error:
                pause = self._after(side, trip, error)
            if trip.loose and not isinstance(keys, Mapping):
                self._side(side_keys)
                return []
            self._rest(side, trip, pause)

    def run(self, flow: Flow[T]) -> T:
        """What a flow returns: each call that it yields is sent, and the answer handed in."""
        with contextlib.closing(flow):
            try:
                call = next(flow)
                while True:
                    try:
                        answer = self.send(call)
                    except SkepError as error:
                        call = flow.throw(error)
                    else:
                        call = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result

    def close(self) -> None:
        """Ends what listens, closes what is idle; calls under way still end. Later use is `QueueClosed`."""
        self._closed = True
        self._stop.set()
        for wire in tuple(self._listening):
            wire.close()
        for idle in tuple(self._idle.values()):
            self._hang_up(idle)

    def ping(self) -> None:
        """Returns when the server has answered; raises if it does not."""
        self._command("PING")

    def check(self) -> list[checks.Finding]:
        """What about the server may lose jobs, and what to do; `checks.demand` raises what must not be."""
        return checks.findings(*self.look(), here_ms())

    def look(self) -> tuple[dict[str, str], dict[str, str] | None]:
        """What the server tells of itself, and its settings; None: it does not tell them."""
        info = checks.parse_info(self._command("INFO"))
        try:
            told = [self._command("CONFIG", "GET", name) for name in checks.SETTINGS]
        except ServerUnavailable:
            raise
        except ServerError:
            return info, None
        return info, checks.parse_settings(told)

    def _command(self, *words: str) -> Any:
        return self._drive(self._side(()), plain(words, watch()))

    def _drive(self, side: Side[Wire], trip: Trip) -> Any:
        """Attempt after attempt, until there is an answer or `_after` raises."""
        try:
            while True:
                try:
                    if side.owed:
                        self._ask_fences(side, trip)
                    reply = self._attempt(side, trip)
                except (RedisError, OSError) as error:
                    self._rest(side, trip, self._after(side, trip, error))
                else:
                    self._answered(side, trip, reply)
                    return reply
        except BaseException:
            # Also an interrupt, or a thread that was told to stop.
            side.give_up(trip)
            raise

    def _attempt(self, side: Side[Wire], trip: Trip) -> Any:
        wire = self._take(side, trip)
        try:
            self._prepare(side, trip, wire)
            if trip.patience:
                self._listening.add(wire)
                self._side(())  # closed in the meantime: nobody would end it
            self._say(trip, wire)
            reply = self._hear_or_load(trip, wire)
        except ResponseError:
            self._lay_down(side, trip, wire)
            raise
        except BaseException:
            # Its reply may still come: nobody else must take it for his own.
            wire.close()
            raise
        finally:
            self._listening.discard(wire)
        self._lay_down(side, trip, wire)
        return reply

    def _prepare(self, side: Side[Wire], trip: Trip, wire: Wire) -> None:
        if trip.packed:
            return
        if trip.call.laned and trip.lane is None:
            try:
                lane = side.lanes.pop()
            except IndexError:
                lane = self._new_lane(wire.ask(TIME))
            trip.enter(lane)
        trip.packed = self._pack(side, trip)

    def _hear_or_load(self, trip: Trip, wire: Wire) -> Any:
        """The reply; a script that the server does not know is brought along, and the call said again."""
        limit = self._limit(trip)
        try:
            return self._hear(trip, wire, limit)
        except NoScriptError:
            trip.out = False
            wire.ask(to_load(trip))
            self._say(trip, wire)
            return self._hear(trip, wire, limit)

    def _say(self, trip: Trip, wire: Wire) -> None:
        trip.out = True
        try:
            wire.say(trip.packed)
        except (RedisError, OSError):
            trip.out = False  # it did not leave as a whole, and half a command is none
            raise

    def _hear(self, trip: Trip, wire: Wire, limit: float | None) -> Any:
        if not self._awaits_copies(trip):
            return wire.hear(limit)
        try:
            reply = wire.hear(limit)
        except ResponseError:
            wire.hear(limit)
            raise
        trip.copies = wire.hear(limit)
        return reply

    def _take(self, side: Side[Wire], trip: Trip) -> Wire:
        while side.idle:
            try:
                wire = side.idle.pop()
            except IndexError:  # another thread was faster
                break
            if trip.began - wire.rested < LONG_REST or wire.is_alive():
                return wire
            wire.close()
        if self._dialer is None:
            self._dialer = Dialer(self.connection)
            self._where = self._dialer.endpoint.safe_url
        if self._dialer.spread and side.node is None:
            side.node = self._dialer.locate(side.key)
            side.idle = self._idle.setdefault(side.node, [])
        return Wire(self._dialer.dial(side.node))

    def _lay_down(self, side: Side[Wire], trip: Trip, wire: Wire) -> None:
        wire.rested = trip.began
        side.idle.append(wire)
        if self._closed:
            self._hang_up(side.idle)

    def _rest(self, side: Side[Wire], trip: Trip, pause: float) -> None:
        """Before the next attempt: what failed one call is not trusted by the others."""
        self._hang_up(side.idle)
        self._look_anew(side)
        if pause and self._stop.wait(pause):
            trip.until = watch()

    def _hang_up(self, idle: list[Wire]) -> None:
        with contextlib.suppress(IndexError):
            while True:
                idle.pop().close()

    def _ask_fences(self, side: Side[Wire], trip: Trip) -> None:
        """Nothing else goes to this queue before the fences of calls that were given up are answered."""
        if not side.fencing.acquire(timeout=self._limit(trip) or self.connection.timeout):
            raise LateReply(FENCE_UNANSWERED)
        try:
            while side.owed:
                given = side.owed[0]
                if not given.known:
                    self._ask(side, given, given.ask(watch()))
                side.owed.pop(0)
        finally:
            side.fencing.release()

    def _ask(self, side: Side[Wire], given: GivenUp, trip: Trip) -> None:
        try:
            kept = replies.read(trip.call, self._attempt(side, trip))
        except ResponseError as error:
            if replies.fate(error) is not Fate.STRANGE:
                raise
            given.settled(None, safe=True)
        else:
            given.settled(kept, safe=trip.copies >= self.connection.wait_replicas)

    def _settle(self, maybe_done: bool, given: GivenUp | None, timeout: float | None) -> Any:
        if given is None:
            return replies.nothing_to_ask(maybe_done)
        side = self._side(given.call.keys)
        trip = given.ask(watch())
        trip.until = math.inf if timeout is None else trip.began + timeout
        while not given.safe:
            try:
                self._ask(side, given, trip)
                if not given.safe:
                    raise self._too_few(trip)
            except (RedisError, OSError) as error:
                self._rest(side, trip, self._after(side, trip, error))
        return replies.outcome(given)

    def _first_attempts(self, trips: Sequence[tuple[Side[Wire], Trip]]) -> list[Any]:
        """One attempt of each, down one connection: replies, or the errors that they ended with."""
        heard: list[Any] = []
        try:
            for side, trip in trips:
                if side.owed:
                    self._ask_fences(side, trip)
            if trips:
                wire = self._take(*trips[0])
                self._exchange_all(trips, wire, heard)
                self._lay_down(*trips[0], wire)
        except (RedisError, OSError) as error:
            heard.extend([error] * (len(trips) - len(heard)))
        return heard

    def _exchange_all(self, trips: Sequence[tuple[Side[Wire], Trip]], wire: Wire, heard: list[Any]) -> None:
        try:
            for side, trip in trips:
                self._prepare(side, trip, wire)
            for _, trip in trips:
                trip.out = True
            wire.say(b"".join(trip.packed for _, trip in trips))
            for _, trip in trips:
                try:
                    heard.append(self._hear(trip, wire, None))
                except ResponseError as error:
                    heard.append(error)
        except BaseException:
            wire.close()
            raise

    def _end(self, side: Side[Wire], trip: Trip, got: Any) -> Any:
        """The call's answer, or the error that it ends with, after a first attempt that ended like this."""
        try:
            if isinstance(got, NoScriptError):
                trip.out = False
                got = self._drive(side, trip)
            elif isinstance(got, Exception):
                self._rest(side, trip, self._after(side, trip, got))
                got = self._drive(side, trip)
            else:
                self._answered(side, trip, got)
            return replies.read(trip.call, got)
        except SkepError as error:
            return error

    def _lock(self) -> threading.Lock:
        return threading.Lock()

    def _begin_anew(self) -> None:
        super()._begin_anew()
        # Locks of the parent may be held by threads that are not here.
        self._dialer, self._listening, self._stop = None, set(), threading.Event()


def _after_fork() -> None:
    for store in tuple(_stores):
        store._begin_anew()


os.register_at_fork(after_in_child=_after_fork)
