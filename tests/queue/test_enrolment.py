from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import skep
from skep import AsyncQueue, Queue, ServerUnavailable, enrolment
from skep.errors import ServerError
from skep.store.connect import Connection
from skep.testing import Server
from tests.support.faces import Faces
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def names(**where: str) -> list[str]:
    return [queue.name for queue in skep.queues(**where)]


def test_the_queues_of_a_server_are_those_that_hold_anything(faces: Faces) -> None:
    added, paused, looked_at = faces.make("b"), faces.make("a {}".replace("{}", "🐝")), faces.make("c")
    others = faces.make("d", prefix="other")

    added.add(1)
    paused.pause()
    looked_at.counts()
    others.add_many([1])

    assert names() == ["a 🐝", "b"]
    assert names(prefix="other") == ["d"]
    assert skep.queues()[1].counts().waiting == 1


def test_a_queue_of_which_nothing_is_left_is_not_listed_any_more(plain: Queue, hand: Hands) -> None:
    plain.add(1)
    before = names()
    store = hand(name="elsewhere").store
    store._command("DEL", *plain.keys.all)

    assert (before, names()) == (["mail"], [])
    assert store._command("EXISTS", "skep:queues") == 0


def test_a_queue_is_named_once_and_not_with_every_call(plain: Queue, hand: Hands) -> None:
    plain.add(1)
    hand(name="elsewhere").store._command("DEL", "skep:queues")

    plain.add(2)
    plain.pause()

    assert names() == []


def test_many_adds_in_one_turn_name_their_queue_and_keep_their_order(skep_url: str) -> None:
    import asyncio

    async def add() -> list[int]:
        async with AsyncQueue("mail", skep_url) as queue:
            await asyncio.gather(*(queue.add(n) for n in range(50)))
            return [job.data async for job in queue.jobs()]

    assert sorted(asyncio.run(add())) == list(range(50))
    assert names() == ["mail"]


def test_a_full_server_does_not_keep_anybody_from_what_frees_memory(skep_url: str) -> None:
    with Server(maxmemory_policy="noeviction") as server, Queue("mail", server.url) as queue:
        queue.add(1, id="k")
        with Queue("mail", server.url) as another:
            store = another._blocking.store
            store._command("CONFIG", "SET", "maxmemory", "1")

            assert another.cancel("k", keep=0) is True

            store._command("CONFIG", "SET", "maxmemory", "0")


def test_without_a_server_the_first_change_was_not_made(faces: Faces, tmp_path: Path) -> None:
    nowhere = Connection(f"unix://{tmp_path}/nobody", connect_timeout=1, retry_for=0.1)
    queue = faces.make("mail", nowhere)

    for change in (lambda: queue.add(1), lambda: queue.add_many([1, 2]), queue.pause):
        with pytest.raises(ServerError) as caught:
            change()
        assert isinstance(caught.value, ServerUnavailable)
        assert caught.value.maybe_done is False


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(enrolment, "_warned_of", set[str]())
    return f"embedded://{tmp_path}/data"


def test_an_add_to_an_embedded_server_that_no_worker_has_served_is_warned_of_once(
    embedded: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "skep"), Queue("mail", embedded) as queue:
        queue.pause()
        before = [record for record in caplog.records if "never had a worker" in record.message]
        queue.add(1)
        queue.add(2)
        with Queue("mail", embedded) as again:
            again.add_many([3])

    warned = [record.message for record in caplog.records if "never had a worker" in record.message]
    assert before == []
    assert len(warned) == 1
    assert all(word in warned[0] for word in ("'mail'", embedded, "SKEP_URL"))


def test_a_queue_that_a_worker_has_served_is_not_warned_of(embedded: str, caplog: pytest.LogCaptureFixture) -> None:
    Hand("mail", embedded).close()

    with caplog.at_level(logging.WARNING, "skep"), Queue("mail", embedded) as queue:
        queue.add(1)

    assert not [record for record in caplog.records if "never had a worker" in record.message]
