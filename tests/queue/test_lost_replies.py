"""Requests and replies that are lost on the way: adds take effect once, and who asks is told what became of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skep import Added, AsyncJob, AsyncQueue, Job, JobSpec, PartlyAdded, Queue, ServerUnavailable, adding
from skep.store.connect import Connection
from skep.testing import Server
from tests.support.faces import Faces
from tests.support.proxy import Action, Proxy

LOST: list[Action] = ["lose request", "lose reply", "repeat"]


@pytest.fixture
def proxy(skep_server: Server, skep_url: str) -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="skep-") as folder:
        made = Proxy(Path(folder, "p"), skep_server.path)
        yield made
        made.close()


def impatient(proxy: Proxy) -> Connection:
    return Connection(proxy.url, timeout=0.3, retry_for=0.0)


@pytest.fixture
def direct(skep_url: str) -> Iterator[Queue]:
    """The same queue, without the proxy."""
    with Queue("mail") as queue:
        yield queue


@pytest.mark.parametrize("action", LOST)
def test_many_adds_take_effect_once_whichever_trip_is_lost(
    faces: Faces, proxy: Proxy, direct: Queue, action: Action
) -> None:
    queue = faces.make("mail", proxy.url)

    proxy.then("pass", action, "pass", action)
    added = queue.add_many(range(2000), ids=True)

    assert added.count == 2000
    assert added.ids is not None
    assert [job and job.data for job in direct.get(added.ids)] == list(range(2000))
    assert direct.counts().total == 2000


@pytest.mark.parametrize("action", LOST)
def test_adds_that_share_a_trip_take_effect_once(proxy: Proxy, direct: Queue, action: Action) -> None:
    async def add() -> list[tuple[str, str | None]]:
        async with AsyncQueue("mail", proxy.url) as queue:
            proxy.then(action)
            plain = [queue.add(n) for n in range(50)]
            proxy.then(action)
            named = [queue.add(n, id=f"k{n % 10}") for n in range(50)]
            return [(job.id, job.outcome) for job in await asyncio.gather(*plain, *named)]

    told = asyncio.run(add())

    assert [outcome for _, outcome in told] == ["added"] * 60 + ["updated"] * 40
    assert direct.counts().total == 60
    assert all(direct.get([id for id, _ in told]))


@pytest.mark.parametrize("named", [False, True])
def test_an_add_that_nobody_answered_gives_its_job_when_the_server_is_back(
    proxy: Proxy, direct: Queue, named: bool
) -> None:
    options: dict[str, Any] = {"id": "k"} if named else {}
    with Queue("mail", impatient(proxy)) as queue:
        queue.add("first", id="k" if named else "other")

        proxy.then("lose reply")
        with pytest.raises(ServerUnavailable) as caught:
            queue.add("second", **options)
        job = caught.value.settle(timeout=5)

    assert caught.value.maybe_done
    assert isinstance(job, Job)
    assert (job.outcome, job.data) == ("updated" if named else "added", "second")
    found = direct.get(job.id)
    assert found is not None
    assert found.data == "second"


def test_an_add_that_never_arrived_gives_nothing_and_never_will(proxy: Proxy, direct: Queue) -> None:
    with Queue("mail", impatient(proxy)) as queue:

        @queue.task
        def work(n: int) -> int:
            return n

        queue.add("first")
        proxy.then("hold request")
        with pytest.raises(ServerUnavailable) as caught:
            work.enqueue(1)
        told = caught.value.settle(timeout=5)
        proxy.deliver()

    assert told is None
    assert direct.counts().total == 1


def test_each_caller_of_a_shared_trip_is_told_of_his_own_job(proxy: Proxy, direct: Queue) -> None:
    async def add(**options: Any) -> list[Any]:
        async with AsyncQueue("mail", impatient(proxy)) as queue:
            await queue.add("first")
            proxy.then("lose reply")
            adds = [queue.add(n, **options) for n in range(5)]
            errors = await asyncio.gather(*adds, return_exceptions=True)
            assert all(isinstance(error, ServerUnavailable) and error.maybe_done for error in errors)
            return [await error.settle(timeout=5) for error in errors if isinstance(error, ServerUnavailable)]

    plain, named = asyncio.run(add()), asyncio.run(add(id="k", name="label"))

    assert all(isinstance(job, AsyncJob) for job in plain + named)
    assert [job.data for job in plain] == list(range(5))
    found = direct.get([job.id for job in plain])
    assert [job and job.data for job in found] == list(range(5))
    assert [job.outcome for job in named] == ["added"] + ["updated"] * 4
    assert {job.id for job in named} == {"k"}


def test_many_adds_that_end_early_tell_what_is_settled_and_what_nobody_knows(proxy: Proxy, direct: Queue) -> None:
    trip = adding.MOST_DRAFTS_IN_A_TRIP
    items = [JobSpec(n, id="k" if n == 2 * trip - 1 else None) if n % 2 else n for n in range(3 * trip)]
    with Queue("mail", impatient(proxy)) as queue:
        queue.add("first", id="k")
        proxy.then("pass", "lose reply")
        with pytest.raises(PartlyAdded) as caught:
            queue.add_many(items)
        told = caught.value.settle(timeout=5)

    assert (caught.value.settled, caught.value.unknown) == (trip, trip)
    assert isinstance(told, Added)
    assert (told.count, told.updated, len(told.ids or [])) == (trip - 1, 1, trip)
    assert direct.counts().total == 2 * trip


def test_many_adds_on_a_loop_tell_the_same_when_they_are_asked(proxy: Proxy, direct: Queue) -> None:
    async def add() -> tuple[PartlyAdded, Any]:
        async with AsyncQueue("mail", impatient(proxy)) as queue:
            await queue.add("first")
            proxy.then("pass", "lose request")
            with pytest.raises(PartlyAdded) as caught:
                await queue.add_many(range(1500))
            return caught.value, await caught.value.settle(timeout=5)

    error, told = asyncio.run(add())

    assert (error.settled, error.unknown, told) == (500, 500, None)
    assert direct.counts().total == 501
