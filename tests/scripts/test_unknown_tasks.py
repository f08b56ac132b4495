"""Jobs that whoever comes by cannot run: set aside without an attempt, taken by who can."""

from __future__ import annotations

import pytest

from skep import lifecycle
from skep.core.record import OPTIONS
from tests.support.engine import Engine, Refused


def aside(engine: Engine, *ids: str, task: str = "t") -> None:
    """Set aside by a worker that does not know their task."""
    engine.join("old")
    for id in ids:
        engine.add(id, task=task)
    assert engine.claim("old", 100) == []


def test_a_job_of_an_unknown_task_is_held_without_an_attempt(engine: Engine) -> None:
    aside(engine, "x")

    job = engine.job("x")

    assert (str(job.status), job.reason, job.known.runs) == ("held", "unknown task", 0)
    assert engine.events()[-1].details["reason"] == "unknown task"


def test_known_jobs_behind_unknown_ones_are_taken_in_the_same_claim(engine: Engine) -> None:
    engine.join()
    for n in range(30):
        engine.add(f"j{n:02d}", task="" if n % 3 == 0 else "t")

    runs = engine.claim(slots=10)

    assert [run.id for run in runs] == [f"j{n:02d}" for n in range(0, 30, 3)]
    assert engine.counts().held == 18


def test_a_worker_that_knows_the_task_takes_what_was_set_aside_before_what_waits(engine: Engine) -> None:
    aside(engine, "a", "b", "c")
    engine.add("late", task="t")
    engine.join("new")

    runs = [run.id for _ in range(2) for run in engine.claim("new", 2, knows=["t", "u"])]

    assert runs == ["a", "b", "c", "late"]


def test_a_renewal_says_that_something_was_set_aside(engine: Engine) -> None:
    aside(engine, "x")

    told = engine.renew("old")

    assert told is not None
    assert told.aside


def test_of_two_tasks_whose_names_begin_alike_each_worker_takes_its_own(engine: Engine) -> None:
    aside(engine, "1", task="send")
    aside(engine, "2", task="send-all")
    aside(engine, "-all", task="send")
    engine.join("new")

    runs = {run.id for run in engine.claim("new", 9, knows=["send"])}

    assert runs == {"1", "-all"}


def test_a_job_set_aside_waits_for_a_time_that_an_add_gave_it(engine: Engine) -> None:
    aside(engine, "x", "y")
    engine.add("x", task="t", delay=5000)
    engine.join("new")

    early = [run.id for _ in range(3) for run in engine.claim("new", 1, knows=["t"])]
    engine.now += 5000
    engine.renew("new", engine.lately)
    then = [run.id for run in engine.claim("new", 1, knows=["t"])]

    assert (early, then) == (["y"], ["x"])


def test_a_job_set_aside_is_found_by_the_task_it_was_given_since(engine: Engine) -> None:
    aside(engine, "x")
    engine.send(lifecycle.update(engine.keys, [("x", None)], task="u"))
    engine.join("new")

    wrong = engine.claim("new", 1, knows=["t"])
    right = engine.claim("new", 1, knows=["u"])

    assert (wrong, [run.id for run in right]) == ([], ["x"])


def test_nothing_is_left_of_a_job_that_is_removed_while_it_is_set_aside(engine: Engine) -> None:
    aside(engine, "x", "y")
    engine.send(lifecycle.update(engine.keys, [("x", None)], task="u"))
    engine.send(lifecycle.remove(engine.keys, [("x", None), ("y", None)]))
    engine.join("new")

    runs = engine.claim("new", 1, knows=["t", "u"])

    assert runs == []
    assert (engine.size("aside"), engine.size("held")) == (0, 0)


def test_a_job_held_by_hand_is_not_taken_by_who_knows_its_task(engine: Engine) -> None:
    engine.join()
    engine.add("x", task="t")
    engine.send(lifecycle.hold(engine.keys, [("x", None)]))

    runs = engine.claim(knows=["t"])

    assert runs == []


def test_a_record_of_a_newer_release_is_set_aside_and_stops_nobody(engine: Engine) -> None:
    engine.join()
    engine.add("newer")
    engine.add("mine")
    raw = engine.get("jobs", "newer")
    engine.command("HSET", engine.keys.all[1], "newer", bytes((raw[0] - OPTIONS + 32,)) + raw[1:])

    runs = engine.claim(slots=2)

    assert [run.id for run in runs] == ["mine"]
    assert engine.get("held", "newer") == b"written by a newer skep"
    assert engine.get("jobs", "newer")[1:] == raw[1:]


def test_a_record_of_a_newer_release_is_left_alone_by_whoever_steers_or_adds(engine: Engine) -> None:
    engine.add("newer")
    raw = engine.get("jobs", "newer")
    assert raw
    engine.command("HSET", engine.keys.all[1], "newer", bytes((raw[0] + 32,)) + raw[1:])

    with pytest.raises(Refused) as refused:
        engine.add("newer", 1)

    assert (refused.value.word, refused.value.about) == ("NewerRecord", "newer")
    for act in (lifecycle.hold, lifecycle.cancel, lifecycle.remove, lifecycle.promote):
        assert engine.send(act(engine.keys, [("newer", None)])) == []
    assert engine.get("jobs", "newer") == bytes((raw[0] + 32,)) + raw[1:]
