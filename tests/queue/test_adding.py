from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skep import (
    Backoff,
    InvalidData,
    InvalidOption,
    JobExists,
    JobOptions,
    JobSpec,
    PartlyAdded,
    PayloadTooLarge,
    Queue,
    QueueFull,
    ReservedId,
    SkepError,
    Update,
)
from skep.core.terms import Priority
from tests.support.faces import Faces
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def test_an_added_job_waits_with_its_data_and_a_new_id(queue: Queue) -> None:
    job = queue.add({"x": 2, "y": [None, "é"]})

    found = queue.get(job.id)
    assert found is not None
    assert (job.outcome, job.status, job.life) == ("added", "waiting", 0)
    assert (found.data, found.status, found.task, found.attempts) == ({"x": 2, "y": [None, "é"]}, "waiting", None, 0)
    assert queue.counts().waiting == 1


def test_all_options_of_a_job_can_be_read_again(queue: Queue) -> None:
    said: dict[str, Any] = {
        "name": "label",
        "priority": Priority.HIGH,
        "meta": {"who": ["a"]},
        "retries": 3,
        "backoff": Backoff.linear(5),
        "max_stalls": 1,
        "timeout": 2.5,
        "keep": 60,
        "max_logs": 7,
        "repeat": 4,
        "every": 90,
    }

    job = queue.add(1, id="k", task="t", **said)
    found = queue.get("k")

    assert found is not None
    assert found.options == job.options == JobOptions(**said)
    assert (found.task, found.name, found.meta, found.priority) == ("t", "label", {"who": ["a"]}, 20)


def test_none_says_of_a_job_that_there_is_to_be_none(queue: Queue) -> None:
    queue.add(1, id="k", timeout=None, keep=None, retries=None)

    found = queue.get("k")

    assert found is not None
    assert found.options == JobOptions(timeout=None, keep=None, retries=0)


@pytest.mark.parametrize("when", [{"delay": 60}, {"run_at": "in a minute"}])
def test_a_job_for_later_is_scheduled(queue: Queue, when: dict[str, Any]) -> None:
    told: dict[str, Any] = {"run_at": time.time() + 60} if "run_at" in when else when

    job = queue.add(1, **told)

    found = queue.get(job.id)
    assert found is not None
    assert job.status == found.status == "scheduled"
    assert 59 < found.run_at.timestamp() - time.time() < 61


def test_a_cron_series_begins_at_its_next_due_time(queue: Queue) -> None:
    job = queue.add(1, cron="0 9 * * *", tz="Europe/Paris")

    found = queue.get(job.id)
    assert found is not None
    assert found.status == "scheduled"
    assert (found.run_at.minute, found.run_at.second) == (0, 0)
    assert 0 < found.run_at.timestamp() - time.time() <= 25 * 3600
    assert (found.options.cron, found.options.tz, found.options.repeat) == ("0 9 * * *", "Europe/Paris", True)


def test_defaults_of_the_queue_that_matter_before_a_run_travel_and_the_others_do_not(faces: Faces) -> None:
    queue = faces.make("mail", defaults=JobOptions(priority="high", name="all", retries=1))

    plain, told = queue.add(1), queue.add(1, priority="low", name=None)
    said = queue.options(retries=0).add(1)

    found = queue.get([plain.id, told.id, said.id])
    assert [job and (job.priority, job.name) for job in found] == [(20, "all"), (50, None), (20, "all")]
    assert [job and job.options for job in found] == [
        JobOptions(priority=20, name="all"),
        JobOptions(priority=50),
        JobOptions(priority=20, name="all", retries=0),
    ]


def test_a_known_id_is_updated_unless_told_otherwise(queue: Queue) -> None:
    first = queue.add(1, id="k", delay=60)

    updated = queue.add(2, id="k", delay=600)
    ignored = queue.add(3, id="k", on_conflict="ignore")
    kept = queue.add(4, id="k", on_conflict=Update(data=False, run_at=False))
    with pytest.raises(JobExists, match="'k'"):
        queue.add(5, id="k", on_conflict="raise")

    found = queue.get("k")
    assert found is not None
    assert [job.outcome for job in (first, updated, ignored, kept)] == ["added", "updated", "ignored", "updated"]
    assert {job.life for job in (first, updated, ignored, kept)} == {found.life}
    assert ignored.data == found.data == 2
    assert found.run_at.timestamp() - time.time() > 500


def test_an_add_to_a_running_id_gives_the_handle_of_the_blocked_job(queue: Queue, hand: Hands) -> None:
    queue.add(1, id="k")
    hand().take()

    blocked = queue.add(2, id="k")

    found = queue.get("k")
    assert found is not None
    assert (blocked.outcome, blocked.status) == ("blocked", "blocked")
    assert found.status == "active"
    assert found.blocked is not None
    assert (found.blocked.life, found.blocked.data) == (blocked.life, 2)
    assert blocked.refresh().data == 2


def test_an_add_to_a_finished_id_begins_a_life_that_remembers_the_last(queue: Queue, hand: Hands) -> None:
    first = queue.add(1, id="k")
    hand().fail()

    again = queue.add(2, id="k")

    found = queue.get("k")
    assert found is not None
    assert found.previous is not None
    assert again.outcome == "added"
    assert found.life == again.life != first.life
    assert (found.previous.life, found.previous.status, found.previous.error) == (first.life, "failed", "ValueError")


@pytest.mark.parametrize("id", ["failure-1", "cron:nightly"])
def test_ids_of_the_queues_own_jobs_are_refused(queue: Queue, id: str) -> None:
    with pytest.raises(ReservedId):
        queue.add(1, id=id)

    assert queue.counts().total == 0


@pytest.mark.parametrize("data", [float("nan"), object(), {"a": [1, {2: object}]}])
def test_data_that_is_no_json_is_refused_before_anything_is_sent(queue: Queue, data: Any) -> None:
    with pytest.raises(InvalidData):
        queue.add(data)

    assert queue.counts().total == 0


def test_data_that_is_too_large_is_refused(faces: Faces) -> None:
    queue = faces.make("mail", max_payload=100)

    with pytest.raises(PayloadTooLarge):
        queue.add("x" * 100)

    assert queue.counts().total == 0


def test_a_spec_is_added_like_a_call_and_has_the_last_word(queue: Queue) -> None:
    job = queue.add(JobSpec({"a": 1}, id="k", priority="low"), priority="high", name="n")

    assert (job.id, job.data, job.priority, job.name) == ("k", {"a": 1}, 50, "n")


def test_many_jobs_are_added_in_order_in_trips_of_any_number(queue: Queue, hand: Hands) -> None:
    added = queue.add_many(({"i": i} for i in range(1203)), ids=True)

    worker = hand()
    taken = [run.id for _ in range(3) for run in worker.take(500)]
    assert (added.count, added.ids) == (1203, taken)


def test_many_large_jobs_go_in_trips_of_their_size(queue: Queue) -> None:
    added = queue.add_many(["x" * 200_000] * 5 + ["y"] * 3)

    assert added.count == queue.counts().waiting == 8


def test_many_specs_each_have_their_own_options(queue: Queue) -> None:
    queue.add(0, id="b3", delay=5)

    added = queue.add_many(
        [JobSpec({"i": i}, id=f"b{i}", retries=i, delay=60 if i % 2 else None) for i in range(10)] + ["last"],
        ids=True,
        task="t",
    )

    found = queue.get([f"b{i}" for i in range(10)])
    assert (added.count, added.updated, len(added.ids or ())) == (10, 1, 11)
    assert [job and job.options.retries for job in found] == list(range(10))
    assert {job and job.task for job in found} == {"t"}
    assert (queue.counts().waiting, queue.counts().scheduled) == (6, 5)


@pytest.mark.parametrize(
    "bad", [object(), float("nan"), JobSpec({"a": object()}), JobSpec(1, retries=-1), JobSpec(1, id="cron:x")]
)
def test_a_bad_item_is_named_by_its_index_and_nothing_of_its_trip_is_added(queue: Queue, bad: Any) -> None:
    with pytest.raises(SkepError, match=r"items\[1\]"):
        queue.add_many([1, bad])

    assert queue.counts().total == 0


def test_when_many_end_early_it_is_told_how_many_are_settled(queue: Queue) -> None:
    def items() -> Iterator[int]:
        yield from range(1100)
        raise ValueError("no more")

    with pytest.raises(PartlyAdded, match="no more") as caught:
        queue.add_many(items())

    assert caught.value.settled == queue.counts().waiting == 1000
    assert caught.value.unknown == 0


def test_a_full_queue_refuses_a_trip_as_a_whole(queue: Queue) -> None:
    queue.configure(max_waiting=700)

    with pytest.raises(PartlyAdded) as caught:
        queue.add_many(range(1000))
    with pytest.raises(QueueFull):
        queue.add_many(range(300))

    assert (caught.value.settled, caught.value.unknown) == (500, 0)
    assert isinstance(caught.value.cause, QueueFull)
    assert queue.counts().waiting == 500


def test_one_id_for_many_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match="id"):
        queue.add_many([1, 2], id="k")

    assert queue.counts().total == 0


def test_none_of_none_is_added(queue: Queue) -> None:
    added = queue.add_many([], ids=True)

    assert (added.count, added.ids) == (0, [])


@dataclasses.dataclass
class Point:
    x: int


def test_data_of_every_kind_arrives_as_json(queue: Queue) -> None:
    ids = queue.add_many([None, Point(1), "🐝" * 1000, 2**60, {"": ""}], ids=True).ids

    found = queue.get(ids or [])

    assert [job and job.data for job in found] == [None, {"x": 1}, "🐝" * 1000, 2**60, {"": ""}]
