"""`wait_replicas`: a server and one replica, both real."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skep.errors import JobExists, ServerUnavailable
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import add, add_once, count
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    with (
        Server(port=0, repl_diskless_sync_delay=0) as primary,
        Server(replicaof=("127.0.0.1", str(primary.port))) as replica,
    ):
        yield primary, replica


@pytest.fixture
def primary(pair: tuple[Server, Server]) -> Server:
    primary, _ = pair
    primary.empty()
    with primary.client() as raw:
        raw.set("reached", "1")
        assert raw.wait(1, 10_000) == 1
    return primary


@pytest.fixture
def between(primary: Server, tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(tmp_path / "proxy", primary.path)
    yield made
    made.close()


@contextmanager
def frozen(server: Server) -> Generator[None]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_change_returns_when_the_replica_has_it(opener: Opener, primary: Server, pair: tuple[Server, Server]) -> None:
    client = opener(primary.url, wait_replicas=1)

    assert client.send(add("x")) == 1

    assert opener(pair[1].url).send(count("x")) == 1


def test_a_change_that_too_few_replicas_have_in_time_may_be_done(
    opener: Opener, primary: Server, pair: tuple[Server, Server]
) -> None:
    client = opener(primary.url, wait_replicas=1, retry_for=0.2)
    client.send(add("x"))

    with frozen(pair[1]), pytest.raises(ServerUnavailable, match="0 replicas have it") as caught:
        client.send(add("x"))

    assert caught.value.maybe_done
    assert client.settle(caught.value) == 2


def test_settling_waits_until_there_are_enough_copies(
    opener: Opener, primary: Server, pair: tuple[Server, Server]
) -> None:
    client = opener(primary.url, wait_replicas=1, retry_for=0.2)
    client.send(add("x"))
    with frozen(pair[1]):
        with pytest.raises(ServerUnavailable) as caught:
            client.send(add("x"))

        with pytest.raises(ServerUnavailable) as again:
            client.settle(caught.value, timeout=0.1)

    assert client.settle(again.value) == 2


def test_a_resend_waits_for_copies_of_what_its_first_attempt_wrote(
    opener: Opener, between: Proxy, pair: tuple[Server, Server]
) -> None:
    client = opener(between.url, wait_replicas=1, retry_for=0.2)
    client.send_many([add("x"), add("y")])

    with frozen(pair[1]):
        between.then("lose reply")
        with pytest.raises(ServerUnavailable, match="0 replicas have it") as caught:
            client.send(add("x"))

    assert client.settle(caught.value) == 2


def test_a_caller_who_is_cancelled_while_copies_are_made_disturbs_nobody(
    between: Proxy, pair: tuple[Server, Server]
) -> None:
    async def main() -> None:
        store = AsyncStore(Connection(between.url, wait_replicas=1, retry_for=5))
        await store.send(add("x"))
        with frozen(pair[1]):
            calls = len(between.calls)
            caller = asyncio.create_task(store.send(add("x")))
            await asyncio.to_thread(between.wait_for_calls, calls + 1)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

        assert await store.send(add("y")) == 1
        await asyncio.gather(*store._adopted)
        assert await store.send(count("x")) == 2
        await store.close()

    asyncio.run(main())


def test_a_dead_connection_is_noticed_while_copies_are_waited_for(
    opener: Opener, between: Proxy, pair: tuple[Server, Server]
) -> None:
    client = opener(between.url, wait_replicas=1, retry_for=0.2, timeout=0.4)
    client.send(add("x"))
    between.then("hang")

    assert client.send(add("x")) == 2


def test_reads_and_refusals_wait_for_no_replica(opener: Opener, primary: Server, pair: tuple[Server, Server]) -> None:
    client = opener(primary.url, wait_replicas=1, retry_for=0.2)
    client.send(add_once("x"))

    with frozen(pair[1]):
        assert client.send(count("x")) == 1
        with pytest.raises(JobExists):
            client.send(add_once("x"))


def test_a_dead_replica_keeps_no_later_call_from_being_sent(
    opener: Opener, primary: Server, pair: tuple[Server, Server]
) -> None:
    client = opener(primary.url, wait_replicas=1, retry_for=0.1)
    client.send(add("x"))

    with frozen(pair[1]):
        for _ in range(2):
            with pytest.raises(ServerUnavailable) as caught:
                client.send(add("x"))
            assert caught.value.maybe_done
        assert client.send(count("x")) == 3


def test_a_server_without_replicas_cannot_promise_copies(opener: Opener, server: Server) -> None:
    client = opener(server.url, wait_replicas=1, retry_for=0.05)

    answers = client.send_many([add("x"), count("x")])

    assert isinstance(answers[0], ServerUnavailable)
    assert answers[0].maybe_done
    assert answers[1] == 1
