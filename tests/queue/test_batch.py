from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skep import AsyncQueue, InvalidData, InvalidOption, JobExists, PartlyAdded, Queue, QueueFull


def test_what_was_collected_is_added_in_order_at_the_end(plain: Queue) -> None:
    with plain.collect() as batch:
        ids = [batch.add(n) for n in range(3)] + [batch.add("named", id="k", name="label", delay=60)]
        assert plain.counts().total == 0

    assert [job and job.data for job in plain.get(ids)] == [0, 1, 2, "named"]
    assert ids[3] == "k"
    assert [job.id for job in plain.jobs(name="label")] == ["k"]


def test_after_an_exception_nothing_is_added(plain: Queue) -> None:
    def fail() -> None:
        with plain.collect() as batch:
            batch.add(1)
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert plain.counts().total == 0


def test_calls_of_tasks_are_collected_and_checked_at_once(plain: Queue) -> None:
    @plain.task(unique=True)
    def greet(name: str, twice: bool = False) -> None: ...

    untyped: Any = greet
    with plain.collect() as batch:
        batch.enqueue(greet.options(priority="high"), "ada", twice=True)
        batch.enqueue(greet, "ada", twice=True)
        with pytest.raises(TypeError):
            batch.enqueue(untyped, 1, 2, 3)

    [job] = plain.jobs()
    assert (job.task, job.data, job.priority) == ("greet", {"name": "ada", "twice": True}, 20)


def test_a_task_of_another_queue_is_refused(plain: Queue, skep_url: str) -> None:
    with Queue("other") as other:

        @other.task
        def elsewhere() -> None: ...

        with plain.collect() as batch, pytest.raises(InvalidOption, match="mail"):
            batch.enqueue(elsewhere)


def test_sending_by_hand_tells_what_became_of_each(plain: Queue) -> None:
    plain.add(0, id="known")
    batch = plain.collect()
    batch.add(1, id="known")
    other = batch.add(2)

    added = batch.send()

    assert (added.count, added.updated, added.ids) == (1, 1, ["known", other])
    assert (len(batch), batch.send().count) == (0, 0)


def test_a_trip_is_judged_whole(plain: Queue) -> None:
    plain.configure(max_waiting=5)
    batch = plain.collect()
    for n in range(6):
        batch.add(n)

    with pytest.raises(QueueFull):
        batch.send()

    assert plain.counts().total == 0


def test_a_refusal_behind_a_first_trip_tells_how_many_are_settled(plain: Queue) -> None:
    plain.add(0, id="known")
    batch = plain.collect()
    for n in range(600):
        batch.add(n)
    batch.add(1, id="known", on_conflict="raise")

    with pytest.raises(PartlyAdded) as caught:
        batch.send()

    assert (caught.value.settled, caught.value.unknown) == (560, 0)
    assert isinstance(caught.value.cause, JobExists)
    assert caught.value.settle() is None


def test_bad_data_is_refused_where_it_is_said(plain: Queue) -> None:
    batch = plain.collect()

    with pytest.raises(InvalidData):
        batch.add(float("nan"))

    assert len(batch) == 0


def test_an_asynchronous_queue_collects_too(skep_url: str) -> None:
    async def collect() -> int:
        async with AsyncQueue("mail", skep_url) as queue:
            async with queue.collect() as batch:
                for n in range(3):
                    batch.add(n)
            added = await batch.send()
            assert added.count == 0
            return (await queue.counts()).waiting

    assert asyncio.run(collect()) == 3
