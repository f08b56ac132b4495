"""Cancelled callers, loops that end, loops that are others: the asynchronous transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skep.errors import QueueClosed, ServerUnavailable, SkepError
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.store.loop import MOST_WIRES
from skep.testing import Server
from tests.support.counting import KEYS, add, append, count, order
from tests.support.proxy import Proxy


def with_store(proxy: Proxy, work: Callable[[AsyncStore], Awaitable[None]], retry_for: float = 5) -> None:
    """Runs this with a transport that talks through the proxy, to which the scripts are known."""

    async def main() -> None:
        store = AsyncStore(Connection(proxy.url, retry_for=retry_for))
        await store.send_many([add("warm"), count("warm"), append("warm"), order()])
        await work(store)
        await store.close()

    asyncio.run(main())


async def cancelled_on_its_way(store: AsyncStore, proxy: Proxy, field: str = "x") -> None:
    """Sends an add whose reply is delayed, and cancels its caller as soon as it has reached the server."""
    calls = len(proxy.calls)
    proxy.then("delay reply")
    caller = asyncio.create_task(store.send(add(field)))
    await asyncio.to_thread(proxy.wait_for_calls, calls + 1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


def test_a_call_goes_on_when_its_caller_is_cancelled(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        calls = len(proxy.calls)
        await cancelled_on_its_way(store, proxy)
        proxy.release()

        assert await store.send(count("x")) == 1

        # Neither was it said again, nor was it given up.
        assert len(proxy.calls) == calls + 2

    with_store(proxy, work)


def test_the_connection_of_a_cancelled_caller_is_used_again_when_its_reply_has_come(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        await cancelled_on_its_way(store, proxy)
        proxy.release()
        await asyncio.gather(*store._adopted)
        connections = proxy.connections

        answers = [await store.send(add("x")) for _ in range(5)]

        assert answers == [2, 3, 4, 5, 6]
        assert proxy.connections == connections == 1

    with_store(proxy, work)


def test_the_call_of_a_cancelled_caller_is_said_again_when_its_connection_is_lost(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        await cancelled_on_its_way(store, proxy)
        proxy.drop()
        await asyncio.gather(*store._adopted)

        assert await store.send(count("x")) == 1
        assert await store.send(add("x")) == 2

    with_store(proxy, work)


def test_a_caller_who_is_cancelled_while_there_is_no_server_is_served_when_it_comes_back(
    proxy: Proxy,
) -> None:
    async def work(store: AsyncStore) -> None:
        proxy.down()
        caller = asyncio.create_task(store.send(add("x")))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        proxy.up()

        await asyncio.gather(*store._adopted)

        assert await store.send(count("x")) == 1

    with_store(proxy, work)


def test_callers_who_are_cancelled_at_any_moment_disturb_nobody(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        callers = [asyncio.create_task(store.send(add("x"))) for _ in range(200)]
        for number, caller in enumerate(callers):
            if number % 2:
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                caller.cancel()
        ends = await asyncio.gather(*callers, return_exceptions=True)
        await asyncio.gather(*store._adopted)

        answers = [end for end in ends if isinstance(end, int)]

        assert len(answers) >= 100
        assert len(set(answers)) == len(answers)
        # Who was cancelled before his first step has sent nothing; all others took effect once.
        assert len(answers) <= await store.send(count("x")) <= 200
        assert [await store.send(add("y")) for _ in range(20)] == list(range(1, 21))

    with_store(proxy, work)


def test_a_time_limit_of_the_callers_own_gives_nothing_up(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        proxy.then("delay reply")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await store.send(add("x"))
        proxy.release()

        assert await store.send(count("x")) == 1
        assert not store._sides[KEYS.base].owed

    with_store(proxy, work)


def test_many_calls_go_on_when_their_caller_is_cancelled(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        calls = len(proxy.calls)
        proxy.then("pass", "delay reply")
        caller = asyncio.create_task(store.send_many([add("x"), add("x"), add("x")]))
        await asyncio.to_thread(proxy.wait_for_calls, calls + 2)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        proxy.release()

        await asyncio.gather(*store._adopted)

        assert await store.send(count("x")) == 3

    with_store(proxy, work)


def test_a_loop_that_ends_gives_up_what_is_under_way_and_the_next_one_asks_for_its_fence(
    proxy: Proxy,
) -> None:
    store = AsyncStore(Connection(proxy.url))

    async def first() -> None:
        await store.send_many([append("warm"), order()])
        proxy.then("hold request")
        calls = len(proxy.calls)
        proxy.then("delay reply")
        caller = asyncio.create_task(store.send(append("second")))
        await asyncio.to_thread(proxy.wait_for_calls, calls + 2)
        caller.cancel()

    async def second() -> list[str]:
        await store.send(append("third"))
        found = await store.send(order())
        await store.close()
        return found

    asyncio.run(first())
    proxy.release()
    found = asyncio.run(second())

    late = proxy.deliver()
    assert str(late[0]).startswith("STALE")
    assert found == ["warm", "second", "third"]


def test_a_task_that_is_cancelled_with_its_loop_leaves_no_trace(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    store = AsyncStore(Connection(proxy.url))
    waiting: list[asyncio.Task[int]] = []

    async def main() -> None:
        await store.send(add("warm"))
        calls = len(proxy.calls)
        proxy.then("delay reply")
        waiting.append(asyncio.create_task(store.send(add("x"))))
        await asyncio.to_thread(proxy.wait_for_calls, calls + 1)

    async def again() -> int:
        answer = await store.send(add("x"))
        await store.close()
        return answer

    asyncio.run(main())
    proxy.release()

    assert waiting[0].cancelled()
    assert asyncio.run(again()) == 2
    assert not caplog.records


def test_lanes_outlive_a_loop(server: Server) -> None:
    store = AsyncStore(Connection(server.url))

    async def main() -> int:
        return await store.send(add("x"))

    answers = [asyncio.run(main()) for _ in range(3)]

    client = server.client()
    assert answers == [1, 2, 3]
    assert client.hlen(f"{KEYS.base}:lanes") == 1
    client.close()


def test_two_loops_at_once_need_two_transports(server: Server) -> None:
    store = AsyncStore(Connection(server.url))
    with asyncio.Runner() as one, asyncio.Runner() as other:
        one.run(store.send(add("x")))

        with pytest.raises(SkepError, match="another event loop"):
            other.run(store.send(add("x")))

        one.run(store.close())


def test_a_burst_of_calls_opens_a_limited_number_of_connections(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        answers = await asyncio.gather(*(store.send(add("x")) for _ in range(300)))

        assert sorted(answers) == list(range(1, 301))
        assert proxy.connections <= MOST_WIRES == 32

    with_store(proxy, work)


def test_those_who_listen_keep_no_connection_from_others(server: Server) -> None:
    async def main() -> None:
        store = AsyncStore(Connection(server.url))
        listeners = [asyncio.create_task(store.listen([f"{KEYS.base}:{n}"], 30)) for n in range(MOST_WIRES + 8)]

        answers = await asyncio.gather(*(store.send(add("x")) for _ in range(10)))

        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)
        await store.close()
        assert sorted(answers) == list(range(1, 11))

    asyncio.run(main())


def test_closing_ends_those_who_listen(proxy: Proxy) -> None:
    async def main() -> None:
        store = AsyncStore(Connection(proxy.url))
        await store.ping()
        listeners = [
            asyncio.create_task(store.listen([KEYS.wake], 30)),
            asyncio.create_task(store.listen({KEYS.events: "$"}, 30)),
        ]
        await asyncio.to_thread(proxy.wait_for, b"BLPOP")
        await asyncio.to_thread(proxy.wait_for, b"XREAD")

        await store.close()

        for listener in listeners:
            with pytest.raises(QueueClosed):
                await listener
        with pytest.raises(QueueClosed, match="mail"):
            await store.send(add("x"))

    asyncio.run(main())


def test_the_same_error_is_settled_by_waiting_for_it(proxy: Proxy) -> None:
    async def work(store: AsyncStore) -> None:
        proxy.then("lose reply")
        with pytest.raises(ServerUnavailable) as caught:
            await store.send(add("x"))

        assert await caught.value.settle() == 1

    with_store(proxy, work, retry_for=0)
