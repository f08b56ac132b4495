from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skep import scripts
from skep.errors import QueueClosed, ServerUnavailable
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server
from tests.support.counting import KEYS, add, append, count, order
from tests.support.proxy import Proxy

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    made = Store(Connection(server.url))
    yield made
    made.close()


@pytest.fixture
def troubled(proxy: Proxy) -> Iterator[Store]:
    """It talks through the proxy, and gives up at the first trouble."""
    made = Store(Connection(proxy.url, retry_for=0))
    made.send_many([append("warm"), order(), add("warm"), count("warm")])
    yield made
    made.close()


def in_a_child(work: Callable[[], bool]) -> bool:
    """Whether work in the child of a fork says yes."""
    pid = os.fork()
    if pid == 0:
        said = 1
        try:
            said = 0 if work() else 1
        finally:
            os._exit(said)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def send_all(threads: int, store: Store, number: int) -> list[int]:
    """The sorted answers to so many adds from so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        sent = [pool.submit(store.send, add("x")) for _ in range(number)]
        return sorted(one.result(20) for one in sent)


def lanes(server: Server) -> list[str]:
    with server.client() as client:
        raw: Any = client
        return [name.decode() for name in raw.hkeys(f"{KEYS.base}:lanes")]


def test_threads_that_share_a_transport_get_each_their_own_answers(store: Store, server: Server) -> None:
    answers = send_all(8, store, 400)

    assert answers == list(range(1, 401))
    assert len(lanes(server)) <= 8


def test_threads_in_trouble_are_served_once_each(proxy: Proxy) -> None:
    store = Store(Connection(proxy.url, retry_for=10))
    proxy.then(*(("pass", "lose request", "pass", "lose reply", "repeat") * 12))

    answers = send_all(6, store, 100)
    store.close()

    assert answers == list(range(1, 101))


def test_lanes_and_connections_of_threads_that_ended_are_used_again(store: Store, server: Server) -> None:
    for _ in range(5):
        send_all(4, store, 40)

    assert len(lanes(server)) <= 4


def test_one_thread_asks_for_a_fence_and_the_others_wait_for_it(troubled: Store, proxy: Proxy) -> None:
    proxy.then("hold request")
    with pytest.raises(ServerUnavailable):
        troubled.send(add("x"))

    answers = send_all(8, troubled, 8)

    assert proxy.sent(scripts.fence) == 1
    assert answers == list(range(1, 9))


def test_the_child_of_a_fork_has_lanes_and_sockets_of_its_own(store: Store, server: Server) -> None:
    store.send(add("parent"))

    def child() -> bool:
        return [store.send(add("child")) for _ in range(300)] == list(range(1, 301))

    said = in_a_child(child)

    assert said
    assert [store.send(add("parent")), store.send(count("child"))] == [2, 300]
    assert len({name.split(":")[1] for name in lanes(server)}) == 2


def test_parent_and_children_that_send_at_once_disturb_nobody(store: Store, server: Server) -> None:
    store.send(add("x"))
    children: list[int] = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                field = f"child{number}"
                os._exit(0 if [store.send(add(field)) for _ in range(100)][-1] == 100 else 1)
            finally:
                os._exit(2)
        children.append(pid)
    mine = [store.send(add("x")) for _ in range(100)]

    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]

    assert mine == list(range(2, 102))
    assert ends == [0, 0, 0]


def test_a_fork_while_another_thread_waits_for_its_reply_or_a_fence_blocks_nobody(
    troubled: Store, proxy: Proxy
) -> None:
    calls = len(proxy.calls)
    proxy.then("delay reply")
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(troubled.send(add("x"))))
    waiting.start()
    proxy.wait_for_calls(calls + 1)

    said = in_a_child(lambda: troubled.send(add("y")) == 1)
    proxy.release()
    waiting.join()

    assert said
    assert answers == [1]


def test_the_fence_of_a_call_that_the_parent_gave_up_is_not_the_childs(troubled: Store, proxy: Proxy) -> None:
    proxy.then("hold request")
    with pytest.raises(ServerUnavailable) as caught:
        troubled.send(append("second"))
    error = caught.value

    said = in_a_child(lambda: troubled.send(append("child")) == b"" and error.settle() is None)
    late = proxy.deliver()

    assert said
    assert str(late[0]).startswith("STALE")
    assert error.settle() is None
    assert troubled.send(order()) == ["warm", "child"]


def test_a_copy_and_a_pickle_have_lanes_of_their_own(store: Store, server: Server) -> None:
    store.send(add("x"))

    copies = [copy.copy(store), copy.deepcopy(store), pickle.loads(pickle.dumps(store))]  # noqa: S301 - our own
    for one in copies:
        one.send(add("x"))
        one.close()

    assert len(lanes(server)) == 4
    assert isinstance(pickle.loads(pickle.dumps(AsyncStore(store.connection))), AsyncStore)  # noqa: S301


def test_an_interrupted_call_is_given_up_and_its_late_copy_kept_out(troubled: Store, proxy: Proxy) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    calls = len(proxy.calls)
    proxy.then("delay reply")
    main = threading.main_thread().ident
    assert main is not None

    def poke() -> None:
        proxy.wait_for_calls(calls + 1)
        signal.pthread_kill(main, signal.SIGUSR1)

    poker = threading.Thread(target=poke)
    poker.start()
    try:
        with pytest.raises(Interrupted):
            troubled.send(append("second"))
    finally:
        poker.join()
        signal.signal(signal.SIGUSR1, before)
    proxy.release()

    # The reply that was delayed is nobody's.
    assert troubled.send(add("x")) == 1
    assert troubled.send(order()) == ["warm", "second"]
    assert proxy.sent(scripts.fence) == 1


def test_a_transport_that_was_closed_says_so_in_the_child_too(store: Store) -> None:
    store.send(add("x"))
    store.close()

    def child() -> bool:
        try:
            store.send(add("x"))
        except QueueClosed as error:
            return error.queue == "mail"
        return False

    assert in_a_child(child)
    with pytest.raises(QueueClosed, match="mail"):
        store.send(add("x"))


def test_closing_lets_calls_of_other_threads_end_with_their_answers(troubled: Store, proxy: Proxy) -> None:
    calls = len(proxy.calls)
    proxy.then("delay reply")
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(troubled.send, add("x"))
        proxy.wait_for_calls(calls + 1)

        troubled.close()
        proxy.release()

        assert answer.result(10) == 1
