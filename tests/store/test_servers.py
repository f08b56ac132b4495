"""Servers that restart, forget, fill up, or refuse for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from skep.errors import JobExists, ServerError, ServerFull, ServerUnavailable, WrongData
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import KEYS, add, add_once, count, remove
from tests.support.proxy import Proxy
from tests.support.stores import Client


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that a test may stop."""
    with Server(appendonly=True, appendfsync="always") as server:
        yield server


@pytest.fixture
def tight(server: Server) -> Iterator[Server]:
    """A server that is full as soon as a test says so."""
    yield server
    server.config_set(maxmemory="0")


def fill(server: Server) -> None:
    server.config_set(maxmemory="1kb", **{"maxmemory-policy": "noeviction"})


def test_a_script_is_brought_along_where_the_server_does_not_know_it(opener: Opener, server: Server) -> None:
    client = opener(server.url)
    with_redis = server.client()
    with_redis.script_flush()
    with_redis.close()

    assert client.send(add("x")) == 1


def test_many_scripts_are_brought_along_where_the_server_does_not_know_them(opener: Opener, server: Server) -> None:
    client = opener(server.url)
    with_redis = server.client()
    with_redis.script_flush()
    with_redis.close()

    assert client.send_many([add("x"), add_once("y"), add("z")]) == [1, 1, 1]


def test_a_server_that_restarts_keeps_lanes_with_its_data(opener: Opener, own: Server) -> None:
    client = opener(own.url)
    client.send(add("x"))

    own.restart()

    assert client.send(add("x")) == 2


def test_a_server_that_died_and_comes_back_is_waited_for(opener: Opener, own: Server) -> None:
    client = opener(own.url, retry_for=0)
    client.send(add("x"))
    own.kill()

    with pytest.raises(ServerUnavailable):
        client.send(add("x"))
    own.start()

    assert client.send(add("x")) == 2


def test_a_call_that_did_not_leave_as_a_whole_has_done_nothing(own: Server) -> None:
    with closing(Store(Connection(own.url, retry_for=0))) as store:
        store.send(add("x"))
        own.kill()

        # The connection was idle, and writing to it fails.
        with pytest.raises(ServerUnavailable, match="nothing was done") as caught:
            store.send(add("x"))

    assert not caught.value.maybe_done


def test_a_server_that_forgot_its_last_writes_takes_the_next_call_as_it_comes(opener: Opener, server: Server) -> None:
    client = opener(server.url)
    client.send(add("x"))
    with_redis = server.client()
    photo = {key: with_redis.dump(key) for key in with_redis.scan_iter()}
    client.send(add("x"))
    client.send(add("x"))

    with_redis.flushall()
    for key, dump in photo.items():
        assert dump is not None
        with_redis.restore(key, 0, dump)
    with_redis.close()

    assert client.send(add("x")) == 2


def test_a_full_server_refuses_what_grows_and_takes_what_frees(opener: Opener, tight: Server) -> None:
    client = opener(tight.url)
    client.send_many([add("x"), remove("y")])
    fill(tight)

    with pytest.raises(ServerFull):
        client.send(add("x"))
    client.send(remove("x"))

    tight.config_set(maxmemory="0")
    assert client.send(count("x")) == 0


def test_a_full_server_keeps_the_answer_of_a_call_that_wrote_nothing(
    opener: Opener, proxy: Proxy, tight: Server
) -> None:
    client = opener(proxy.url)
    client.send(add_once("x"))
    fill(tight)
    proxy.then("lose reply")

    with pytest.raises(JobExists):
        client.send(add_once("x"))


def test_a_full_server_still_answers_a_resend_and_a_fence(opener: Opener, proxy: Proxy, tight: Server) -> None:
    patient, hasty = opener(proxy.url), opener(proxy.url, retry_for=0)
    patient.send_many([add("x"), count("x")])
    proxy.then("lose reply")
    with pytest.raises(ServerUnavailable) as caught:
        hasty.send(add("x"))
    fill(tight)

    assert hasty.settle(caught.value) == 2


def test_a_refusal_of_a_full_server_after_a_lost_copy_is_not_the_last_word(
    client: Client, proxy: Proxy, tight: Server
) -> None:
    client.send(add("x"))
    fill(tight)
    proxy.then("hold request")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(add("x"))
    tight.config_set(maxmemory="0")
    proxy.deliver()

    assert caught.value.maybe_done
    assert client.settle(caught.value) == 2


def test_a_server_that_cannot_write_is_waited_for_and_has_done_nothing(opener: Opener, server: Server) -> None:
    client = opener(server.url, retry_for=0.2)
    client.send(add("x"))
    server.config_set(**{"min-replicas-to-write": 1})
    try:
        with pytest.raises(ServerUnavailable, match="nothing was done") as caught:
            client.send(add("x"))
    finally:
        server.config_set(**{"min-replicas-to-write": 0})

    assert not caught.value.maybe_done
    assert client.send(add("x")) == 2


def test_a_key_that_skep_did_not_write_is_named_as_wrong_data(opener: Opener, server: Server) -> None:
    client = opener(server.url)
    with_redis = server.client()
    with_redis.rpush(KEYS.base, "not a hash")
    with_redis.close()

    with pytest.raises(WrongData, match="did not write"):
        client.send(add("x"))


def test_a_wrong_password_is_told_at_once_and_not_shown(opener: Opener, own: Server) -> None:
    own.config_set(requirepass="sesame")
    told = own.url.replace("unix://", "unix://default:{}@")

    with pytest.raises(ServerError, match="refused user and password") as caught:
        opener(told.format("wrong")).send(add("x"))
    with pytest.raises(ServerError, match="asks for a password"):
        opener(own.url).send(add("x"))

    assert opener(told.format("sesame")).send(add("x")) == 1
    assert "wrong" not in str(caught.value)


def test_a_database_number_is_one_of_its_own(opener: Opener, server: Server) -> None:
    first, second = opener(server.url), opener(f"{server.url}?db=1")

    first.send(add("x"))

    assert second.send(count("x")) == 0


def test_a_server_that_answers_is_told_from_one_that_does_not(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0)
    client.ping()
    proxy.down()

    with pytest.raises(ServerUnavailable):
        client.ping()
