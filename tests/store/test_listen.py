from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from skep.core.keys import Keys
from skep.errors import QueueClosed, ServerUnavailable
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import KEYS, add
from tests.support.proxy import Proxy
from tests.support.stores import Client

SOON = 0.05
LONG = 30.0


@pytest.fixture
def raw(server: Server) -> Iterator[Redis]:
    client = server.client()
    yield client
    client.close()


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def test_a_marker_that_is_there_is_taken_at_once(client: Client, raw: Redis) -> None:
    raw.rpush(KEYS.wake, "1")

    assert client.listen([KEYS.wake], LONG) == [KEYS.wake.encode(), b"1"]
    assert raw.exists(KEYS.wake) == 0


def test_a_marker_of_any_of_several_queues_wakes(client: Client, raw: Redis) -> None:
    other = Keys("sums").wake
    raw.rpush(other, "1")

    assert client.listen([KEYS.wake, other], LONG) == [other.encode(), b"1"]


def test_nothing_is_heard_where_nothing_happens_in_time(client: Client) -> None:
    assert client.listen([KEYS.wake], SOON) is None
    assert client.listen({KEYS.events: "0"}, SOON) is None


def test_entries_after_the_given_ones_are_heard_of_every_stream(client: Client, raw: Redis) -> None:
    raw.xadd(KEYS.events, {"a": "1"}, id="1-0")
    raw.xadd(KEYS.events, {"a": "2"}, id="2-0")
    raw.xadd(KEYS.answers, {"b": "1"}, id="7-0")

    heard = client.listen({KEYS.events: "1-0", KEYS.answers: "0"}, LONG)

    assert heard == [
        [KEYS.events.encode(), [[b"2-0", [b"a", b"2"]]]],
        [KEYS.answers.encode(), [[b"7-0", [b"b", b"1"]]]],
    ]


def test_no_more_entries_are_heard_than_asked_for(client: Client, raw: Redis) -> None:
    for number in range(1, 6):
        raw.xadd(KEYS.events, {"a": "1"}, id=f"{number}-0")

    [[_, entries]] = client.listen({KEYS.events: "0"}, LONG, count=2)

    assert [entry[0] for entry in entries] == [b"1-0", b"2-0"]


def test_who_listens_hears_what_happens_later(
    client: Client, proxy: Proxy, raw: Redis, aside: ThreadPoolExecutor
) -> None:
    heard = aside.submit(client.listen, [KEYS.wake], LONG)
    proxy.wait_for(b"BLPOP")
    raw.rpush(KEYS.wake, "1")

    assert heard.result(10) == [KEYS.wake.encode(), b"1"]


def test_a_marker_may_be_lost_with_its_connection_so_the_caller_looks_for_himself(
    client: Client, proxy: Proxy, aside: ThreadPoolExecutor
) -> None:
    heard = aside.submit(client.listen, [KEYS.wake], LONG)
    proxy.wait_for(b"BLPOP")
    proxy.drop()

    assert heard.result(10) == []


def test_who_listens_to_a_stream_goes_on_where_the_connection_was_lost(
    opener: Opener, proxy: Proxy, raw: Redis, aside: ThreadPoolExecutor
) -> None:
    client = opener(proxy.url, retry_for=10)
    heard = aside.submit(client.listen, {KEYS.events: "0"}, LONG)
    proxy.wait_for(b"XREAD")
    proxy.drop()
    raw.xadd(KEYS.events, {"a": "1"}, id="1-0")

    assert heard.result(10) == [[KEYS.events.encode(), [[b"1-0", [b"a", b"1"]]]]]


def test_who_listens_to_no_server_is_told_after_the_time_for_resends(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0.1)
    proxy.down()

    with pytest.raises(ServerUnavailable):
        client.listen([KEYS.wake], LONG)


def test_calls_go_on_while_somebody_listens(
    server: Server, proxy: Proxy, raw: Redis, aside: ThreadPoolExecutor
) -> None:
    store = Store(Connection(proxy.url))
    heard = aside.submit(store.listen, [KEYS.wake], LONG)
    proxy.wait_for(b"BLPOP")

    assert store.send(add("x")) == 1

    raw.rpush(KEYS.wake, "1")
    assert heard.result(10)
    store.close()


def test_closing_from_another_thread_ends_who_listens(proxy: Proxy, aside: ThreadPoolExecutor) -> None:
    store = Store(Connection(proxy.url))
    heard = [aside.submit(store.listen, keys, LONG) for keys in ([KEYS.wake], {KEYS.events: "0"})]
    proxy.wait_for(b"BLPOP")
    proxy.wait_for(b"XREAD")

    store.close()

    for one in heard:
        with pytest.raises(QueueClosed, match="mail"):
            one.result(10)
