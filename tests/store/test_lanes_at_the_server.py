"""What scripts/lib/calls.lua makes of lanes: its side of STALE, OLDLANE, kept answers and sweeping."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from skep.errors import ServerUnavailable
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.clock import GivenClock
from tests.support.counting import KEYS, add, clock, count, end_of_run, sweep
from tests.support.proxy import Proxy
from tests.support.stores import Client

LANES = f"{KEYS.base}:lanes"


@pytest.fixture
def raw(server: Server) -> Iterator[Any]:
    client = server.client()
    yield client
    client.close()


@pytest.fixture
def given() -> GivenClock:
    return GivenClock()


@pytest.fixture
def client(opener: Opener, proxy: Proxy, given: GivenClock) -> Client:
    return opener(proxy.url, clock=given, retry_for=0.5)


def use_up_numbers_of(proxy: Proxy, raw: Any) -> None:
    """Has somebody else use the lane of the last call, as the child of a fork would that knew no better."""
    words = [word.decode("latin-1") for word in proxy.calls[-1]]
    lane = words[-2].rsplit(" ", 1)[0]
    raw.execute_command(*words[:-2], f"{lane} {10**15:016d}", "elsewhere")


def test_a_script_sees_the_given_time(client: Client, given: GivenClock) -> None:
    assert client.send(clock()) == given.now_ms


def test_without_a_given_clock_a_script_sees_the_servers_time(opener: Opener, server: Server, raw: Any) -> None:
    client = opener(server.url)
    seconds, micros = raw.time()

    assert 0 <= client.send(clock()) - (seconds * 1000 + micros // 1000) < 10_000


def test_the_server_keeps_number_time_and_answer_of_a_lanes_last_call(
    client: Client, given: GivenClock, raw: Any
) -> None:
    client.send(add("x"))
    client.send(add("x"))

    [(lane, value)] = raw.hgetall(LANES).items()
    assert lane.decode().split(":")[2] == str(given.now_ms // 1000)
    assert value == b"0000000000000002" + str(given.now_ms).encode() + b"=2"


def test_a_lane_that_rested_for_a_night_is_replaced_and_its_call_applied(
    client: Client, given: GivenClock, raw: Any
) -> None:
    client.send(add("x"))
    raw.delete(LANES)
    given.advance(hours=2)

    assert client.send(add("x")) == 2


def test_a_lane_that_rested_is_replaced_for_who_has_no_patience_too(
    opener: Opener, given: GivenClock, proxy: Proxy, raw: Any
) -> None:
    client = opener(proxy.url, clock=given, retry_for=0)
    client.send(add("x"))
    raw.delete(LANES)
    given.advance(hours=2)

    assert client.send(add("x")) == 2


def test_a_lane_younger_than_an_hour_may_be_unknown_to_a_server_that_forgot(
    client: Client, given: GivenClock, proxy: Proxy, raw: Any
) -> None:
    client.send(add("x"))
    raw.flushall()
    given.advance(seconds=3599)

    answer = client.send(add("x"))

    assert answer == 1
    assert proxy.calls[-1][-2] == proxy.calls[-2][-2][:-1] + b"2"


def test_a_resend_in_a_lane_that_nobody_knows_any_more_leaves_its_fate_open(
    client: Client, given: GivenClock, proxy: Proxy, raw: Any
) -> None:
    client.send(add("x"))
    raw.delete(LANES)
    given.advance(hours=2)
    proxy.then("lose request")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(add("x"))

    assert caught.value.maybe_done
    with pytest.raises(ServerUnavailable, match="holds nothing that tells"):
        client.settle(caught.value)
    assert client.send(add("x")) == 2


def test_a_fence_in_a_lane_that_nobody_knows_any_more_is_over_and_later_calls_go_on(
    opener: Opener, given: GivenClock, proxy: Proxy, raw: Any
) -> None:
    client = opener(proxy.url, clock=given, retry_for=0)
    client.send(add("x"))
    errors: list[ServerUnavailable] = []
    for _ in range(2):
        proxy.then("lose reply")
        with pytest.raises(ServerUnavailable) as caught:
            client.send(add("x"))
        errors.append(caught.value)
        raw.delete(LANES)
        given.advance(hours=2)
        if len(errors) == 1:
            assert client.send(count("x")) == 2

    for error in errors:
        with pytest.raises(ServerUnavailable, match="holds nothing that tells"):
            client.settle(error)
    assert client.send(add("x")) == 4


def test_an_end_of_a_run_is_said_again_in_a_new_lane(client: Client, given: GivenClock, proxy: Proxy, raw: Any) -> None:
    client.send(add("x"))
    raw.delete(LANES)
    given.advance(hours=2)
    proxy.then("lose request")

    assert client.send(end_of_run("x")) == 2


def test_a_number_that_somebody_else_used_up_is_not_applied_but_said_in_a_new_lane(
    client: Client, proxy: Proxy, raw: Any
) -> None:
    client.send(add("x"))
    use_up_numbers_of(proxy, raw)

    assert client.send(add("x")) == 2


def test_a_resend_whose_number_somebody_else_used_up_leaves_its_fate_open(
    client: Client, proxy: Proxy, raw: Any
) -> None:
    client.send(add("x"))
    use_up_numbers_of(proxy, raw)
    proxy.then("lose request")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(add("x"))

    assert caught.value.maybe_done
    assert client.send(count("x")) == 1


def test_lanes_that_were_silent_for_two_hours_are_swept_and_others_stay(
    opener: Opener, server: Server, given: GivenClock
) -> None:
    silent = [opener(server.url, clock=given) for _ in range(3)]
    for one in silent:
        one.send(add("x"))
    given.advance(hours=1.5)
    silent[0].send(add("x"))
    given.advance(hours=0.6)

    assert silent[0].send(sweep()) == 1


def test_a_lane_says_which_host_and_process_speaks(client: Client, raw: Any) -> None:
    client.send(add("x"))

    host, pid, birth, token = next(iter(raw.hgetall(LANES))).decode().split(":")
    assert host == re.sub("[^0-9A-Za-z._-]", "", socket.gethostname())[:20]
    assert pid == str(os.getpid())
    assert re.fullmatch("[0-9]{10}", birth)
    assert re.fullmatch("[0-9a-f]{8}", token)
