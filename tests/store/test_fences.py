from __future__ import annotations

import pickle

import pytest

from skep.core.keys import Keys
from skep.errors import JobExists, ServerError, ServerUnavailable
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import add, add_once, append, count, order
from tests.support.proxy import Action, Proxy
from tests.support.stores import Client


@pytest.fixture
def client(opener: Opener, proxy: Proxy) -> Client:
    """It gives up at the first trouble. Scripts are known, so that a test counts its own calls only."""
    made = opener(proxy.url, retry_for=0)
    made.send_many([add("warm"), append("warm"), add_once("once"), count("warm"), order()])
    return made


def gives_up(client: Client, proxy: Proxy, trouble: Action, word: str = "second") -> ServerUnavailable:
    proxy.then(trouble)
    with pytest.raises(ServerUnavailable) as caught:
        client.send(append(word))
    assert caught.value.maybe_done
    return caught.value


def test_a_late_copy_of_a_call_that_was_given_up_does_not_take_effect_after_later_calls(
    client: Client, proxy: Proxy
) -> None:
    gives_up(client, proxy, "hold request")
    client.send(append("third"))

    late = proxy.deliver()

    assert str(late[0]).startswith("STALE")
    assert client.send(order()) == ["warm", "third"]


def test_a_copy_that_arrives_before_the_fence_takes_effect_before_later_calls(client: Client, proxy: Proxy) -> None:
    gives_up(client, proxy, "hold request")
    proxy.deliver()

    client.send(append("third"))

    assert client.send(order()) == ["warm", "second", "third"]


def test_a_read_waits_behind_the_fence_too(client: Client, proxy: Proxy) -> None:
    gives_up(client, proxy, "hold request")
    before = client.send(order())

    proxy.deliver()

    assert client.send(order()) == before == ["warm"]


def test_a_call_that_waits_behind_a_fence_has_not_been_sent(client: Client, proxy: Proxy) -> None:
    gives_up(client, proxy, "lose reply")
    proxy.then("lose request")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(append("third"))

    assert not caught.value.maybe_done
    assert client.send(order()) == ["warm", "second"]


def test_a_call_does_not_wait_longer_for_a_fence_than_for_an_answer(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0, timeout=0.2)
    client.send(append("warm"))
    gives_up(client, proxy, "hang")
    proxy.then("hang")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(append("third"))

    assert not caught.value.maybe_done
    client.send(append("fourth"))
    assert client.send(order()) == ["warm", "fourth"]


def test_another_queue_does_not_wait_for_a_fence(client: Client, proxy: Proxy) -> None:
    gives_up(client, proxy, "lose reply")
    calls = len(proxy.calls)

    client.send(count("x", Keys("sums")))

    assert len(proxy.calls) == calls + 1


def test_settling_tells_the_answer_that_the_call_was_given(client: Client, proxy: Proxy) -> None:
    proxy.then("lose reply")
    with pytest.raises(ServerUnavailable) as caught:
        client.send(add("warm"))

    assert client.settle(caught.value) == 2
    assert client.settle(caught.value) == 2
    assert client.send(count("warm")) == 2


def test_settling_tells_that_a_call_never_takes_effect(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "hold request")

    assert client.settle(error) is None

    assert str(proxy.deliver()[0]).startswith("STALE")
    assert client.send(order()) == ["warm"]


def test_settling_raises_the_refusal_that_the_call_was_given(client: Client, proxy: Proxy) -> None:
    proxy.then("lose reply")
    with pytest.raises(ServerUnavailable) as caught:
        client.send(add_once("once"))

    with pytest.raises(JobExists, match="once"):
        client.settle(caught.value)


def test_settling_after_the_fence_was_asked_for_by_another_call_needs_no_trip(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")
    client.send(append("third"))
    calls = len(proxy.calls)

    assert client.settle(error) == b""
    assert len(proxy.calls) == calls


def test_settling_goes_on_until_the_server_answers(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")
    proxy.then("lose request", "lose reply", "lose request", "lose reply")

    assert client.settle(error) == b""


def test_settling_for_a_limited_time_may_have_to_be_repeated(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")
    proxy.down()

    with pytest.raises(ServerUnavailable) as caught:
        client.settle(error, timeout=0.1)
    proxy.up()

    assert caught.value.maybe_done
    assert client.settle(caught.value) == b""


def test_a_lost_fence_is_asked_for_again_with_the_same_number(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")
    calls = len(proxy.calls)
    proxy.then("lose reply")

    client.settle(error)

    first, second = proxy.calls[calls:]
    assert first == second


def test_several_calls_that_were_given_up_are_fenced_one_after_the_other(
    opener: Opener, client: Client, proxy: Proxy
) -> None:
    proxy.then("hold request")
    answers = client.send_many([append("a"), append("b"), append("c")])
    assert [answer.maybe_done for answer in answers] == [True, True, True]

    client.send(append("d"))

    late = proxy.deliver()
    assert str(late[0]).startswith("STALE")
    assert client.send(order()) == ["warm", "d"]


def test_a_server_that_forgot_everything_tells_that_the_call_has_no_effect(
    client: Client, proxy: Proxy, server: Server
) -> None:
    error = gives_up(client, proxy, "lose reply")
    server.empty()

    assert client.settle(error) is None
    assert client.send(order()) == []


def test_an_error_that_travels_to_another_process_cannot_be_settled_there(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")

    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own

    assert copied.maybe_done
    assert str(copied) == str(error)
    with pytest.raises(ServerError, match="only the process that made this call"):
        copied.settle()


def test_an_error_says_where_and_why_and_what_can_be_done(client: Client, proxy: Proxy) -> None:
    error = gives_up(client, proxy, "lose reply")

    assert proxy.url in str(error)
    assert "error.settle()" in str(error)
