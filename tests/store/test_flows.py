from __future__ import annotations

import pytest

from skep.core.call import Call, Flow
from skep.errors import JobExists, ServerUnavailable
from tests.store.conftest import Opener
from tests.support.counting import add, add_once, count
from tests.support.proxy import Proxy
from tests.support.stores import Client


def total_of_adds(fields: str) -> Flow[int]:
    total = 0
    for field in fields:
        total += yield add(field)
    return total


def first_that_is_new(fields: str) -> Flow[str]:
    for field in fields:
        try:
            yield add_once(field)
        except JobExists:
            continue
        return field
    return ""


def test_a_flow_is_given_the_answer_to_each_of_its_calls(client: Client) -> None:
    assert client.run(total_of_adds("xxy")) == 1 + 2 + 1


def test_a_flow_may_go_on_after_a_refusal(client: Client) -> None:
    client.send(add_once("a"))

    assert client.run(first_that_is_new("abc")) == "b"


def test_a_flow_that_is_refused_ends_with_the_refusal(client: Client) -> None:
    closed: list[str] = []

    def flow() -> Flow[int]:
        try:
            first: int = yield add_once("x")
            second: int = yield add_once("x")
            return first + second
        finally:
            closed.append("yes")

    with pytest.raises(JobExists):
        client.run(flow())

    assert closed == ["yes"]


def test_a_flow_without_calls_returns_at_once(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0)
    proxy.down()

    assert client.run(total_of_adds("")) == 0


def test_a_flow_learns_that_the_server_is_gone(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0)
    proxy.down()

    def flow() -> Flow[str]:
        try:
            yield count("x")
        except ServerUnavailable:
            return "gone"
        return "there"

    assert client.run(flow()) == "gone"


def test_a_reply_that_cannot_be_read_is_the_callers_error_and_harms_no_connection(client: Client) -> None:
    call = add("x")
    unreadable = Call(call.script, call.keys, call.args, lambda _: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        client.send(unreadable)

    assert client.send(add("x")) == 2
