from __future__ import annotations

import pytest

from skep.core.keys import Keys
from skep.errors import JobExists, ServerUnavailable
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import add, add_once, append, count, order, remove
from tests.support.proxy import Action, Proxy
from tests.support.stores import Client


def said(call: list[bytes]) -> tuple[str, int]:
    """The lane and number of a call to the scripts of `counting`."""
    lane, number = call[-2].decode().rsplit(" ", 1)
    return lane, int(number)


@pytest.mark.parametrize("trouble", ["lose request", "lose reply", "repeat"])
def test_a_call_in_trouble_takes_effect_once_and_gets_its_own_answer(
    client: Client, proxy: Proxy, trouble: Action
) -> None:
    client.send(add("x"))
    proxy.then(trouble)

    answer = client.send(add("x"))

    assert answer == 2
    assert client.send(count("x")) == 2


def test_a_resend_says_the_same_lane_and_number_again(client: Client, proxy: Proxy) -> None:
    proxy.then("pass", "lose reply")
    client.send(add("x"))

    client.send(add("x"))

    first, second = proxy.calls[-2:]
    assert first == second


def test_a_lane_is_used_again_with_the_next_number(client: Client, proxy: Proxy) -> None:
    client.send(add("x"))
    client.send(add("y"))

    before, after = (said(call) for call in proxy.calls[-2:])
    assert before[0] == after[0]
    assert (before[1], after[1]) == (1, 2)


def test_a_lane_serves_one_queue_only(client: Client, proxy: Proxy) -> None:
    client.send(add("x", Keys("mail")))
    client.send(add("x", Keys("sums")))

    before, after = (said(call) for call in proxy.calls[-2:])
    assert before[0] != after[0]


def test_a_refusal_is_an_answer_that_a_resend_gets_again(client: Client, proxy: Proxy) -> None:
    client.send(add_once("x"))
    proxy.then("lose reply")

    with pytest.raises(JobExists):
        client.send(add_once("x"))

    assert len(proxy.calls) >= 3
    assert client.send(count("x")) == 1


def test_a_call_held_back_is_not_applied_after_its_resend_was_refused(
    client: Client, opener: Opener, proxy: Proxy, server: Server
) -> None:
    # The first attempt is on its way for long; its resend meets a job that somebody else has removed since.
    other = opener(server.url)
    client.send(add_once("warm"))
    other.send(add_once("x"))
    proxy.then("hold request")
    with pytest.raises(JobExists):
        client.send(add_once("x"))
    other.send(remove("x"))

    late = proxy.deliver()

    assert late == [b"!JobExists x"]
    assert other.send(count("x")) == 0


def test_a_late_copy_is_refused_when_its_lane_has_gone_on(client: Client, proxy: Proxy) -> None:
    client.send(append("first"))
    proxy.then("hold request")
    client.send(append("second"))
    client.send(append("third"))

    late = proxy.deliver()

    assert str(late[0]).startswith("STALE")
    assert client.send(order()) == ["first", "second", "third"]


def test_a_read_is_said_again_when_its_reply_was_lost(client: Client, proxy: Proxy) -> None:
    client.send(add("x"))
    proxy.then("lose reply", "lose request")

    assert client.send(count("x")) == 1


def test_nobody_hears_the_reply_to_a_call_that_was_not_his(client: Client, proxy: Proxy) -> None:
    troubles: tuple[Action, ...] = ("lose reply", "lose request", "lose reply")
    for trouble in troubles:
        proxy.then(trouble)
        assert client.send(add(trouble)) in {1, 2}

    assert [client.send(count("lose reply")), client.send(count("lose request"))] == [2, 1]


def test_a_server_that_says_nothing_is_given_up_after_the_time_for_one_answer(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, timeout=0.2, retry_for=0)
    client.send(add("x"))
    proxy.then("hang")

    with pytest.raises(ServerUnavailable) as caught:
        client.send(add("x"))

    assert caught.value.maybe_done


def test_a_server_that_says_nothing_is_asked_again_on_another_connection(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, timeout=0.2, retry_for=5)
    client.send(add("x"))
    proxy.then("hang")

    assert client.send(add("x")) == 2


def test_a_server_that_is_not_there_has_done_nothing(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0.1)
    proxy.down()

    with pytest.raises(ServerUnavailable, match="nothing was done") as caught:
        client.send(add("x"))

    assert not caught.value.maybe_done
    assert client.settle(caught.value) is None


def test_a_server_that_comes_back_in_time_is_not_noticed(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=10)
    client.send(add("x"))
    proxy.then("lose request", "lose reply", "lose request", "lose reply")

    assert client.send(add("x")) == 2


def test_many_calls_go_together_and_each_gets_its_answer_or_its_refusal(client: Client) -> None:
    client.send(add_once("taken"))

    answers = client.send_many([add("x"), add_once("taken"), count("x"), add("y")])

    assert answers[0] == answers[3] == 1
    assert isinstance(answers[1], JobExists)
    assert answers[2] in {0, 1}


@pytest.mark.parametrize("trouble", ["lose request", "lose reply"])
def test_many_calls_of_which_one_is_lost_take_effect_once_each(client: Client, proxy: Proxy, trouble: Action) -> None:
    proxy.then("pass", "pass", trouble)

    answers = client.send_many([add("x"), add("y"), add("z"), add("x")])

    assert [answers[1], answers[2]] == [1, 1]
    assert {answers[0], answers[3]} == {1, 2}
    assert [client.send(count(field)) for field in "xyz"] == [2, 1, 1]


def test_many_calls_to_no_server_end_with_an_error_each(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0)
    proxy.down()

    answers = client.send_many([add("x"), count("y")])

    assert [type(answer) for answer in answers] == [ServerUnavailable, ServerUnavailable]
    assert not any(answer.maybe_done for answer in answers)


def test_no_calls_at_all_need_no_server(opener: Opener, proxy: Proxy) -> None:
    client = opener(proxy.url, retry_for=0)
    proxy.down()

    assert client.send_many([]) == []
