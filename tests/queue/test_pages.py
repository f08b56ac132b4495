from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skep import InvalidOption, JobSpec, Queue
from skep.errors import UnknownStatus
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def ids(queue: Queue, **which: Any) -> list[str]:
    return sorted(job.id for job in queue.jobs(**which))


@pytest.mark.parametrize("count", [7, 700])
@pytest.mark.parametrize("status", ["waiting", "scheduled", "held"])
def test_pages_give_every_job_once(queue: Queue, status: str, count: int) -> None:
    made = queue.add_many(range(count), ids=True, delay=60 if status == "scheduled" else None).ids or []
    if status == "held":
        queue.hold(made)
    found: list[str] = []

    page = queue.page(status, limit=50)
    while True:
        assert len(page) <= 50
        found += [job.id for job in page]
        if page.next_cursor is None:
            break
        page = queue.page(status, limit=50, cursor=page.next_cursor)

    assert sorted(found) == sorted(made)


def test_what_moves_behind_a_page_is_passed_over_and_what_stays_is_told(queue: Queue) -> None:
    made = queue.add_many(range(100), ids=True).ids or []
    first = queue.page(limit=20)
    told = {job.id for job in first}

    gone = [id for id in made if id not in told][:30]
    queue.remove(gone)
    rest = queue.page(limit=1000, cursor=first.next_cursor)

    assert {job.id for job in rest} | told == set(made) - set(gone)


def test_jobs_are_found_by_name_task_and_status_together(queue: Queue) -> None:
    queue.add_many(
        JobSpec(
            i,
            id=f"j{i}",
            name="even" if i % 2 == 0 else "odd",
            task="t" if i < 6 else "u",
            delay=60 if i % 3 == 0 else None,
        )
        for i in range(12)
    )

    assert ids(queue, name="even", task="t") == ["j0", "j2", "j4"]
    assert ids(queue, name="odd", status="scheduled") == ["j3", "j9"]
    assert ids(queue, task="u", name="even", status="waiting") == ["j10", "j8"]
    assert ids(queue, task="nope") == ids(queue, name="nope") == []


def test_a_limit_gives_so_many_jobs_that_match(queue: Queue) -> None:
    queue.add_many(({"i": i} for i in range(300)), task="t")
    queue.add_many(({"i": i} for i in range(300)), task="u")

    found = list(queue.jobs(task="u", limit=250))

    assert len({job.id for job in found}) == 250
    assert {job.task for job in found} == {"u"}
    assert list(queue.jobs(limit=0)) == []


def test_statuses_have_the_names_of_other_queues_too(queue: Queue, hand: Hands) -> None:
    worker = hand()
    good, bad = queue.add(1), queue.add(2)
    worker.succeed()
    worker.fail()

    assert ids(queue, status="completed") == ids(queue, status="succeeded") == [good.id]
    assert ids(queue, status="terminated") == [bad.id]
    with pytest.raises(UnknownStatus, match="waiting, scheduled"):
        ids(queue, status="created")


def test_many_ids_are_got_in_the_order_asked_for(queue: Queue) -> None:
    made = queue.add_many(range(5), ids=True).ids or []

    found = queue.get([made[3], "nobody", made[1]])

    assert [job and job.id for job in found] == [made[3], None, made[1]]
    assert queue.get([]) == []
    assert queue.get("nobody") is None


def test_jobs_with_much_data_are_read_in_several_trips(queue: Queue) -> None:
    made = queue.add_many(["x" * 100_000] * 12, ids=True).ids or []

    assert [job and len(job.data) for job in queue.get(made)] == [100_000] * 12
    assert len(list(queue.jobs())) == 12


def test_a_queue_has_a_job_by_id_and_by_name(queue: Queue) -> None:
    queue.add(1, id="k", name="n")

    assert queue.has("k")
    assert queue.has(name="n")
    assert queue.has("k", name="n")
    assert not queue.has("k", name="m")
    assert not queue.has("nobody")
    with pytest.raises(InvalidOption):
        queue.has()


@pytest.mark.parametrize("cursor", ["", "x", "5", '{"a":1}', "[1]"])
def test_a_cursor_that_is_none_is_refused(queue: Queue, cursor: str) -> None:
    with pytest.raises(InvalidOption, match="next_cursor"):
        queue.page(cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, 100_000])
def test_a_limit_that_is_none_is_refused(queue: Queue, limit: int) -> None:
    with pytest.raises(InvalidOption, match="limit"):
        queue.page(limit=limit)


def test_counts_have_every_status_and_the_total_and_cannot_be_changed(queue: Queue) -> None:
    queue.add(1, delay=60)
    queue.add(2)

    counts = queue.summary()

    assert counts == queue.counts()
    assert (counts.scheduled, counts.waiting, counts.total) == (1, 1, 2)
    with pytest.raises(AttributeError):
        counts.waiting = 9  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def test_all_that_a_job_tells_fits_into_json(queue: Queue, hand: Hands) -> None:
    import json

    worker = hand()
    queue.add({"a": 1}, id="k", meta=[1], retries=3, backoff=None, keep=True)
    worker.fail("broken")
    queue.add({"a": 2}, id="k")

    found = queue.get("k")

    assert found is not None
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["id"], told["data"], told["status"], told["previous"]["error"]) == (
        "k",
        {"a": 2},
        "waiting",
        "ValueError",
    )
    assert told["created_at"].endswith("Z")
