"""The transport of an event loop: the verbs of `store/sync.py`; a call outlives a caller who is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as LateReply

from skep.core.call import Call, Flow
from skep.core.lanes import Fate, GivenUp, Trip
from skep.errors import ServerError, ServerUnavailable, SkepError
from skep.store import checks, replies
from skep.store.loop import LoopTransport
from skep.store.transport import FENCE_UNANSWERED, TIME, Side, here_ms, plain, to_listen, to_load, watch
from skep.store.wires import AsyncWire

T = TypeVar("T")


class AsyncStore(LoopTransport):
    """Sends calls on one event loop: the one that runs at its first use, and another when that has ended.

    A call goes on when its caller is cancelled: it belongs to the transport, and one cancelled coroutine
    gives nothing up. After a fork, and as a copy, it has lanes and sockets of its own.
    """

    async def send(self, call: Call[T]) -> T:
        """The call's answer. Its refusals are raised; no answer in time is `ServerUnavailable`."""
        if self._loop is not asyncio.get_running_loop():
            await self._bind()
        side = self._side(call.keys)
        trip = Trip(call, watch())
        try:
            reply = await self._drive(side, trip)
        except asyncio.CancelledError:
            self._adopt(side, trip)
            raise
        answer: T = replies.read(call, reply)
        return answer

    async def send_many(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """The answers of calls that do not wait for one another: in their order, errors in their places.

        Each goes in a lane of its own and is said again as by `send`; which is applied first is open.
        """
        await self._bind()
        trips = [(self._side(call.keys), Trip(call, watch())) for call in calls]
        ends: list[Any] = []
        try:
            heard = await self._first_attempts(trips)
            for (side, trip), got in zip(trips, heard, strict=True):
                ends.append(await self._end(side, trip, got))
        except BaseException as error:
            for side, trip in trips[len(ends) :]:
                if isinstance(error, asyncio.CancelledError):
                    self._adopt(side, trip)
                else:
                    side.give_up(trip)
            raise
        return ends

    async def listen(
        self,
        keys: Sequence[str] | Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - it is the server that waits
        count: int | None = None,
    ) -> Any:
        """Waits until there is something: the raw reply, or None when `timeout` seconds are over.

        `keys`: lists, of which one element is taken (a wake marker); or streams, each with the id after which
        to read, at most `count` entries. When the connection is lost while it waits for a list, a marker may
        be lost with it: it returns `[]`, and the caller looks for itself.
        """
        await self._bind()
        trip, side_keys = plain(to_listen(keys, timeout, count), watch()), tuple(keys)
        trip.patience = timeout
        while True:
            side = self._side(side_keys)
            try:
                return await self._attempt(side, trip)
            except asyncio.CancelledError:
                await self._drop_wire(trip)
                raise
            except (RedisError, OSError) as error:
                pause = self._after(side, trip, error)
            if trip.loose and not isinstance(keys, Mapping):
                self._side(side_keys)
                return []
            await self._rest(side, trip, pause)

    async def run(self, flow: Flow[T]) -> T:
        """What a flow returns: each call that it yields is sent, and the answer handed in."""
        with contextlib.closing(flow):
            try:
                call = next(flow)
                while True:
                    try:
                        answer = await self.send(call)
                    except SkepError as error:
                        call = flow.throw(error)
                    else:
                        call = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result

    async def close(self) -> None:
        """Ends what listens, waits for calls that go on, closes connections. Later use is `QueueClosed`."""
        self._closed = True
        if self._loop is not asyncio.get_running_loop():
            return
        for wire in tuple(self._sweeper.waiting):
            if wire.slot is None:
                wire.expire()
        await self._wind_up()
        guard, self._until_the_loop_ends = self._until_the_loop_ends, None
        if guard is not None:
            await guard.aclose()

    async def ping(self) -> None:
        """Returns when the server has answered; raises if it does not."""
        await self._command("PING")

    async def check(self) -> list[checks.Finding]:
        """What about the server may lose jobs, and what to do; `checks.demand` raises what must not be."""
        info = checks.parse_info(await self._command("INFO"))
        try:
            told = [await self._command("CONFIG", "GET", name) for name in checks.SETTINGS]
        except ServerUnavailable:
            raise
        except ServerError:
            told = None
        return checks.findings(info, None if told is None else checks.parse_settings(told), here_ms())

    async def _command(self, *words: str) -> Any:
        await self._bind()
        return await self._drive(self._side(()), plain(words, watch()))

    async def _drive(self, side: Side[AsyncWire], trip: Trip) -> Any:
        """Attempt after attempt, until there is an answer or `_after` raises. Cancelled, it may go on."""
        try:
            while True:
                try:
                    if side.owed:
                        await self._ask_fences(side, trip)
                    reply = await self._attempt(side, trip)
                except (RedisError, OSError) as error:
                    await self._rest(side, trip, self._after(side, trip, error))
                else:
                    self._answered(side, trip, reply)
                    return reply
        except asyncio.CancelledError:
            raise
        except BaseException:
            side.give_up(trip)
            raise

    async def _attempt(self, side: Side[AsyncWire], trip: Trip) -> Any:
        wire: AsyncWire = trip.wire or await self._take(side, trip)
        try:
            reply = await self._exchange(side, trip, wire)
        except ResponseError:
            trip.wire = None
            self._lay_down(side, trip, wire)
            raise
        except asyncio.CancelledError:
            # Where nothing but the reply is still to come, whoever goes on with the trip hears it.
            if trip.wire is None:
                await self._close(wire)
            raise
        except BaseException:
            # Its reply may still come: nobody else must take it for his own.
            trip.wire = None
            await self._close(wire)
            raise
        trip.wire = None
        self._lay_down(side, trip, wire)
        return reply

    async def _exchange(self, side: Side[AsyncWire], trip: Trip, wire: AsyncWire) -> Any:
        """Says what has not been said yet and hears the reply, in the time there is for it."""
        self._sweeper.begin(wire, self._limit(trip) or self.connection.timeout)
        try:
            if trip.wire is None:
                await self._prepare(side, trip, wire)
                await self._say(trip, wire)
            try:
                return await self._hear(trip, wire)
            except NoScriptError:
                trip.wire, trip.out = None, False
                await wire.ask(to_load(trip))
                await self._say(trip, wire)
                return await self._hear(trip, wire)
        except asyncio.CancelledError:
            if wire.was_late():
                raise LateReply("no reply in time") from None
            raise
        finally:
            self._sweeper.end(wire)

    async def _prepare(self, side: Side[AsyncWire], trip: Trip, wire: AsyncWire) -> None:
        if trip.packed:
            return
        if trip.call.laned and trip.lane is None:
            trip.enter(side.lanes.pop() if side.lanes else self._new_lane(await wire.ask(TIME)))
        trip.packed = self._pack(side, trip)

    async def _say(self, trip: Trip, wire: AsyncWire) -> None:
        trip.out = True
        await wire.say(trip.packed)
        # Of two replies, who goes on with it would not know which is still to come.
        if not self._awaits_copies(trip):
            trip.wire = wire

    async def _hear(self, trip: Trip, wire: AsyncWire) -> Any:
        if not self._awaits_copies(trip):
            return await wire.hear()
        try:
            reply = await wire.hear()
        except ResponseError:
            await wire.hear()
            raise
        trip.copies = await wire.hear()
        return reply

    async def _ask_fences(self, side: Side[AsyncWire], trip: Trip) -> None:
        """Nothing else goes to this queue before the fences of calls that were given up are answered."""
        try:
            async with asyncio.timeout(self._limit(trip) or self.connection.timeout):
                await side.fencing.acquire()
        except TimeoutError:
            raise LateReply(FENCE_UNANSWERED) from None
        try:
            while side.owed:
                given = side.owed[0]
                if not given.known:
                    fence = given.ask(watch())
                    try:
                        await self._ask(side, given, fence)
                    finally:
                        await self._drop_wire(fence)
                side.owed.pop(0)
        finally:
            side.fencing.release()

    async def _ask(self, side: Side[AsyncWire], given: GivenUp, trip: Trip) -> None:
        try:
            kept = replies.read(trip.call, await self._attempt(side, trip))
        except ResponseError as error:
            if replies.fate(error) is not Fate.STRANGE:
                raise
            given.settled(None, safe=True)
        else:
            given.settled(kept, safe=trip.copies >= self.connection.wait_replicas)

    async def _settle(
        self,
        maybe_done: bool,
        given: GivenUp | None,
        timeout: float | None,  # noqa: ASYNC109 - None is for ever
    ) -> Any:
        if given is None:
            return replies.nothing_to_ask(maybe_done)
        await self._bind()
        side = self._side(given.call.keys)
        trip = given.ask(watch())
        trip.until = math.inf if timeout is None else trip.began + timeout
        while not given.safe:
            try:
                await self._ask(side, given, trip)
                if not given.safe:
                    raise self._too_few(trip)
            except asyncio.CancelledError:
                await self._drop_wire(trip)
                raise
            except (RedisError, OSError) as error:
                await self._rest(side, trip, self._after(side, trip, error))
        return replies.outcome(given)

    async def _first_attempts(self, trips: Sequence[tuple[Side[AsyncWire], Trip]]) -> list[Any]:
        """One attempt of each, down one connection: replies, or the errors that they ended with."""
        heard: list[Any] = []
        try:
            for side, trip in trips:
                if side.owed:
                    await self._ask_fences(side, trip)
            if trips:
                wire = await self._take(*trips[0])
                await self._exchange_all(trips, wire, heard)
                self._lay_down(*trips[0], wire)
        except (RedisError, OSError) as error:
            heard.extend([error] * (len(trips) - len(heard)))
        return heard

    async def _exchange_all(
        self, trips: Sequence[tuple[Side[AsyncWire], Trip]], wire: AsyncWire, heard: list[Any]
    ) -> None:
        self._sweeper.begin(wire, self.connection.timeout)
        try:
            for side, trip in trips:
                await self._prepare(side, trip, wire)
            for _, trip in trips:
                trip.out = True
            await wire.say(b"".join(trip.packed for _, trip in trips))
            for _, trip in trips:
                try:
                    heard.append(await self._hear(trip, wire))
                except ResponseError as error:
                    heard.append(error)
        except BaseException as error:
            late = isinstance(error, asyncio.CancelledError) and wire.was_late()
            await self._close(wire)
            if late:
                raise LateReply("no reply in time") from None
            raise
        finally:
            self._sweeper.end(wire)

    async def _end(self, side: Side[AsyncWire], trip: Trip, got: Any) -> Any:
        """The call's answer, or the error that it ends with, after a first attempt that ended like this."""
        try:
            if isinstance(got, NoScriptError):
                trip.out = False
                got = await self._drive(side, trip)
            elif isinstance(got, Exception):
                await self._rest(side, trip, self._after(side, trip, got))
                got = await self._drive(side, trip)
            else:
                self._answered(side, trip, got)
            return replies.read(trip.call, got)
        except SkepError as error:
            return error
