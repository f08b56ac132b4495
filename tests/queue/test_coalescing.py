from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skep import AsyncQueue, JobExists, QueueFull, SkepError
from skep.testing import Server


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[AsyncQueue]:
    async with AsyncQueue("mail", url) as queue:
        yield queue


def scripts_run(server: Server) -> int:
    client = server.client()
    try:
        told: Any = client.info("commandstats")
        return int(told.get("cmdstat_evalsha", {"calls": 0})["calls"])
    finally:
        client.close()


def looped(test: Callable[[AsyncQueue], Coroutine[Any, Any, None]], url: str) -> None:
    async def run() -> None:
        async with opened(url) as queue:
            await test(queue)

    asyncio.run(run())


def test_adds_of_one_turn_share_a_trip_and_stay_in_order(skep_server: Server, skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        await queue.ping()
        before = scripts_run(skep_server)

        jobs = await asyncio.gather(*(queue.add(i) for i in range(1200)))

        assert scripts_run(skep_server) - before <= 4
        assert [job.id for job in jobs] == sorted(job.id for job in jobs)
        assert [job.data for job in jobs] == list(range(1200))
        assert (await queue.counts()).waiting == 1200

    looped(test, skep_url)


def test_each_caller_hears_of_his_own_outcome(skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        await queue.add(0, id="a")

        plain, known, ignored, new = await asyncio.gather(
            queue.add(1), queue.add(2, id="a"), queue.add(3, id="a", on_conflict="ignore"), queue.add(4, id="b")
        )

        outcomes = [job.outcome for job in (plain, known, ignored, new)]
        assert outcomes == ["added", "updated", "ignored", "added"]
        assert (ignored.data, ignored.life) == (2, known.life)

    looped(test, skep_url)


def test_a_full_queue_judges_adds_of_one_turn_one_by_one(skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        await queue.configure(max_waiting=3)

        ends = await asyncio.gather(*(queue.add(i) for i in range(5)), return_exceptions=True)

        assert [isinstance(end, QueueFull) for end in ends] == [False, False, False, True, True]
        assert (await queue.counts()).waiting == 3

    looped(test, skep_url)


def test_one_who_meets_a_known_id_spoils_nothing_for_the_others(skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        await queue.add(0, id="a")

        ends = await asyncio.gather(
            queue.add(1), queue.add(2, id="a", on_conflict="raise"), queue.add(3), return_exceptions=True
        )

        assert [type(end) for end in ends if isinstance(end, BaseException)] == [JobExists]
        assert (await queue.counts()).waiting == 3

    looped(test, skep_url)


def test_wrong_data_is_refused_before_the_trip_of_the_others(skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        ends = await asyncio.gather(queue.add(1), queue.add(object()), return_exceptions=True)

        assert isinstance(ends[1], SkepError)
        assert (await queue.counts()).waiting == 1

    looped(test, skep_url)


def test_a_cancelled_caller_stops_listening_and_the_trip_goes_on(skep_url: str) -> None:
    async def test(queue: AsyncQueue) -> None:
        await queue.ping()
        first, second = asyncio.create_task(queue.add(1)), asyncio.create_task(queue.add(2))
        await asyncio.sleep(0)

        first.cancel()
        job = await second

        with pytest.raises(asyncio.CancelledError):
            await first
        assert job.outcome == "added"
        assert (await queue.counts()).waiting == 2

    looped(test, skep_url)


def test_a_queue_is_used_on_one_loop_after_the_other(skep_url: str) -> None:
    queue = AsyncQueue("mail", skep_url)

    async def add() -> int:
        await asyncio.gather(*(queue.add(i) for i in range(3)))
        return (await queue.counts()).waiting

    assert [asyncio.run(add()), asyncio.run(add())] == [3, 6]
