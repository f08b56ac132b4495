from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from skep import UNSET, InvalidOption, JobActive, JobSpec, Queue, SkepError, StaleJob
from skep.core.outcome import Succeeded
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def status(queue: Queue, id: str) -> str | None:
    found = queue.get(id)
    return None if found is None else str(found.status)


def test_a_waiting_job_is_held_and_released(queue: Queue) -> None:
    job = queue.add(1)

    assert job.hold(reason="look at it") is True
    assert job.refresh().status == "held"
    assert job.reason == "look at it"
    assert job.hold() is False
    assert job.release() is True
    assert job.release() is False
    assert status(queue, job.id) == "waiting"


def test_a_scheduled_job_is_promoted(queue: Queue) -> None:
    job = queue.add(1, delay=60)

    assert job.promote() is True
    assert job.promote() is False
    assert status(queue, job.id) == "waiting"


def test_a_waiting_job_is_cancelled_once(queue: Queue) -> None:
    job = queue.add(1)

    assert queue.cancel(job.id, reason="not wanted") is True
    assert queue.cancel(job.id) is False
    assert job.refresh().status == "cancelled"
    assert job.reason == "not wanted"


def test_a_run_is_asked_to_stop_unless_it_is_left_alone(queue: Queue, hand: Hands) -> None:
    job = queue.add(1)
    hand().take()

    assert job.cancel(active=False) is False
    assert job.refresh().cancel_requested is False
    assert job.cancel() is True
    assert job.refresh().cancel_requested is True
    assert job.status == "active"


def test_a_cancelled_job_may_be_kept_not_at_all(queue: Queue) -> None:
    job = queue.add(1)

    assert job.cancel(keep=0) is True
    assert queue.get(job.id) is None


def test_several_ids_give_those_that_changed(queue: Queue) -> None:
    a, b, c = (queue.add(i) for i in range(3))

    assert queue.remove([a.id, "nobody", c.id]) == [a.id, c.id]
    assert queue.remove(a.id) is False
    assert queue.hold((b.id, a.id)) == [b.id]
    assert queue.cancel([]) == []


def test_a_thousand_ids_go_in_several_trips(queue: Queue) -> None:
    ids = queue.add_many(range(1100), ids=True).ids or []

    assert queue.cancel(ids) == ids
    assert queue.counts().cancelled == 1100


def test_all_that_match_are_acted_upon_and_counted(queue: Queue) -> None:
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

    assert queue.cancel(name="odd") == 6
    assert queue.hold(task="t") == 3
    assert queue.promote(status="scheduled", task="u") == 1
    assert queue.update(name="even", task="u", priority="high") == 3
    assert queue.remove(status="cancelled") == 6
    counts = queue.counts()
    assert (counts.held, counts.waiting, counts.scheduled, counts.cancelled) == (3, 3, 0, 0)
    assert {job.priority for job in queue.jobs(task="u")} == {20}


def test_only_those_that_are_old_enough_match(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add_many(range(3))
    for _ in range(3):
        worker.succeed()

    assert queue.clean("succeeded", older_than=3600) == 0
    assert queue.retry(status="succeeded", older_than=3600) == 0
    assert queue.clean("completed") == 3
    assert queue.counts().total == 0


@pytest.mark.parametrize("which", [{}, {"ids": "x", "status": "held"}, {"colour": "red"}])
def test_what_says_no_jobs_is_a_type_error(queue: Queue, which: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        queue.cancel(**which)


@pytest.mark.parametrize("which", [{"status": "created"}, {"older_than": -1, "status": "held"}, {"name": ""}])
def test_wrong_words_for_jobs_are_refused(queue: Queue, which: dict[str, Any]) -> None:
    with pytest.raises(SkepError):
        queue.hold(**which)


def test_only_finished_jobs_are_cleaned(queue: Queue) -> None:
    with pytest.raises(SkepError, match="succeeded, failed or cancelled"):
        queue.clean("waiting")


def test_emptying_takes_what_waits_and_leaves_what_runs_and_what_has_ended(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1)
    worker.succeed()
    queue.add(2)
    worker.retry()
    queue.add(3, id="runs")
    worker.take()
    queue.add(4, id="runs")
    queue.add_many([5, 6])
    queue.add(7, delay=60)
    queue.add(8).hold()

    removed = queue.empty()

    counts = queue.counts()
    assert removed == 6
    assert (counts.active, counts.succeeded, counts.total) == (1, 1, 2)


def test_dropping_leaves_no_job_behind(queue: Queue, hand: Hands) -> None:
    queue.add_many(range(3))
    hand().take()
    queue.add(1, delay=60, name="late")

    assert queue.drop() == 4
    assert queue.counts().total == 0
    assert queue.has(name="late") is False


def test_a_finished_job_lives_again_with_its_data_and_no_counts(queue: Queue, hand: Hands) -> None:
    job = queue.add({"a": 1}, id="k")
    hand().fail()

    assert queue.retry("k") is True
    found = queue.get("k")
    assert found is not None
    assert (found.status, found.data, found.failures, found.attempts) == ("waiting", {"a": 1}, 0, 0)
    assert found.life != job.life
    assert queue.retry("k") is False


def test_a_finished_job_is_redacted(queue: Queue, hand: Hands) -> None:
    job = queue.add({"secret": 1})
    hand().succeed("secret")

    assert job.redact() is True
    assert job.refresh().data is None
    assert job.result(timeout=5) is None


def test_what_is_named_is_changed_and_the_rest_stays(queue: Queue) -> None:
    job = queue.add(1, id="k", name="n", retries=3, delay=60)

    changed = job.update(
        data={"a": 1}, name=None, task="t", priority="low", timeout=5, meta=[1], run_at=time.time() + 600
    )

    job.refresh()
    assert changed is True
    assert (job.data, job.name, job.task, job.priority, job.meta) == ({"a": 1}, None, "t", 50, [1])
    assert (job.options.retries, job.options.timeout) == (3, 5)
    assert job.run_at.timestamp() - time.time() > 500
    assert queue.has(name="n") is False


def test_data_may_be_changed_to_none(queue: Queue) -> None:
    job = queue.add(1)

    assert job.update(data=None) is True
    assert job.refresh().data is None


def test_no_time_is_now(queue: Queue) -> None:
    job = queue.add(1, delay=60)

    assert job.update(run_at=None) is True
    assert job.refresh().status == "waiting"


def test_a_running_job_keeps_its_data_and_a_finished_one_all_but_meta(queue: Queue, hand: Hands) -> None:
    worker = hand()
    job = queue.add(1)
    [run] = worker.take()

    assert job.update(meta={"a": 1}) is True
    with pytest.raises(JobActive, match=job.id):
        job.update(data=2)
    worker.end(run, Succeeded(b"1"))
    assert job.update(data=2) is False
    assert job.update(meta={"b": 1}) is True
    assert job.refresh().meta == {"b": 1}


def test_the_terms_of_a_series_can_be_changed(queue: Queue) -> None:
    job = queue.add(1, id="r", repeat=True, every=60)

    job.update(cron="30 4 * * *", tz="Asia/Tokyo")

    job.refresh()
    assert (job.options.cron, job.options.tz, job.options.every) == ("30 4 * * *", "Asia/Tokyo", UNSET)
    assert job.run_at.minute == 30
    assert job.update(every=90, repeat=2) is True
    assert job.refresh().options.cron is UNSET


@pytest.mark.parametrize("wrong", [{"priority": 35}, {"timeout": -1}, {"tz": "Europe/Paris"}])
def test_wrong_changes_are_refused(queue: Queue, wrong: dict[str, Any]) -> None:
    job = queue.add(1)

    with pytest.raises(InvalidOption):
        job.update(**wrong)


@pytest.mark.parametrize("wrong", [{"id": "x"}, {"on_conflict": "ignore"}, {"colour": "red"}])
def test_changes_that_there_are_not_are_type_errors(queue: Queue, wrong: dict[str, Any]) -> None:
    job = queue.add(1)

    with pytest.raises(TypeError):
        job.update(**wrong)


def test_a_handle_whose_life_is_over_acts_no_longer(queue: Queue, hand: Hands) -> None:
    old = queue.add(1, id="k")
    hand().succeed()
    queue.add(2, id="k")

    for act in (old.cancel, old.hold, old.remove, old.refresh):
        with pytest.raises(StaleJob, match="'k'"):
            act()
    assert status(queue, "k") == "waiting"


def test_the_handle_of_a_blocked_job_acts_on_that(queue: Queue, hand: Hands) -> None:
    queue.add(1, id="k")
    hand().take()
    blocked = queue.add(2, id="k")

    assert [job.life for job in queue.jobs(status="blocked")] == [blocked.life]
    assert blocked.update(data=3) is True
    assert blocked.refresh().data == 3
    assert blocked.cancel() is True
    assert queue.counts().blocked == 0
    assert status(queue, "k") == "active"


def test_log_lines_are_noted_from_anywhere_and_read_in_order(queue: Queue) -> None:
    job = queue.add(1, max_logs=250)
    for i in range(260):
        assert job.log(f"line {i}", level="warning") is True

    found = list(job.logs())

    assert [line.text for line in found] == [f"line {i}" for i in range(10, 260)]
    assert {line.level for line in found} == {"warning"}
    assert all(line.at.tzinfo for line in found)


@pytest.mark.parametrize(("text", "level"), [("x" * 9000, "info"), ("x", "two words"), (5, "info")])
def test_a_line_that_is_none_is_refused(queue: Queue, text: Any, level: str) -> None:
    job = queue.add(1)

    with pytest.raises(SkepError):
        job.log(text, level)


def test_a_job_that_is_gone_logs_nothing(queue: Queue) -> None:
    job = queue.add(1)
    job.remove()

    assert job.log("late") is False
    assert list(job.logs()) == []


def test_a_paused_queue_says_so_until_it_is_resumed(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1)

    paused = [queue.pause(), queue.pause(), queue.paused, worker.take()]
    resumed = [queue.resume(), queue.resume(), queue.paused, len(worker.take())]

    assert paused == [True, False, True, []]
    assert resumed == [True, False, False, 1]


def test_settings_are_written_and_taken_back(queue: Queue) -> None:
    assert queue.configure(max_waiting=5, history="endings") is True
    assert queue.configure(max_waiting=5) is False
    assert (queue.settings.max_waiting, queue.settings.history) == (5, "endings")
    assert queue.configure(max_waiting=None) is True
    assert queue.settings.max_waiting is None
    with pytest.raises(TypeError):
        queue.configure(colour="red")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_upkeep_does_what_time_brings(queue: Queue) -> None:
    job = queue.add(1, expires=0.001)
    deadline = time.monotonic() + 10

    while job.refresh().status == "waiting":
        queue.upkeep()
        assert time.monotonic() < deadline

    assert (job.status, job.reason) == ("cancelled", "expired")
