"""Failure jobs: written in the step in which their job fails, by whatever it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skep import lifecycle
from skep.core.outcome import Failed, Retried, Succeeded
from skep.core.record import pack
from tests.support.engine import Engine

ERROR = b'{"type":"Oops","message":"it broke","kind":"error"}'


def handle(engine: Engine, *tasks: str) -> None:
    engine.send(lifecycle.configure(engine.keys, {"on_failure": pack(dict.fromkeys(tasks, True))}))


def fail(engine: Engine, id: str = "x", **terms: Any) -> None:
    engine.join()
    engine.add(id, {"n": 1}, **terms)
    (run,) = engine.claim(knows=["", "t", "u"])
    engine.settle(run, Failed(ERROR))


def failure_jobs(engine: Engine) -> list[Any]:
    return [job for id, job in engine.photo().jobs.items() if id.startswith("failure-")]


@pytest.mark.parametrize(
    ("handlers", "task", "written"),
    [
        (["t"], "t", "on_failure:t"),
        (["t", "*"], "t", "on_failure:t"),
        (["*"], "t", "on_failure"),
        (["*"], "", "on_failure"),
        (["u"], "t", None),
        ([], "t", None),
    ],
)
def test_the_most_specific_handler_gets_the_failed_job(
    engine: Engine, handlers: list[str], task: str, written: str | None
) -> None:
    handle(engine, *handlers)

    fail(engine, task=task)

    assert [job.head.task for job in failure_jobs(engine)] == ([written] if written else [])


def test_a_failure_job_is_named_after_the_failure_and_carries_the_job_as_it_ended(engine: Engine) -> None:
    handle(engine, "*")

    fail(engine, options={"name": 'ä"', "meta": '{"m":1}', "priority": 10})

    failed, added = engine.events()[-2:]
    (job,) = failure_jobs(engine)
    data = json.loads(job.head.data)
    assert (failed.type, added.type, job.id) == ("failed", "added", f"failure-{failed.seq}")
    assert job.head.options == {"priority": 20}
    assert {name: data[name] for name in ("id", "name", "data", "meta", "priority", "failures", "status")} == {
        "id": "x",
        "name": 'ä"',
        "data": {"n": 1},
        "meta": {"m": 1},
        "priority": 10,
        "failures": 1,
        "status": "failed",
    }
    assert data["error"]["message"] == "it broke"


def test_a_job_that_stalls_too_often_has_a_failure_job_too(engine: Engine) -> None:
    handle(engine, "*")
    engine.join()
    engine.add("x", options={"max_stalls": 0})
    engine.claim()

    engine.send(lifecycle.leave(engine.keys, "w", died=True))

    (job,) = failure_jobs(engine)
    assert json.loads(job.head.data)["error"]["type"] == "WorkerDied"


def test_only_the_last_failure_of_a_life_calls_the_handler(engine: Engine) -> None:
    handle(engine, "*")
    engine.join()
    engine.add("x")
    for outcome in (Retried(0, ERROR), Retried(0, ERROR), Succeeded(b"1")):
        engine.settle(engine.claim()[0], outcome)

    assert failure_jobs(engine) == []


def test_a_failure_job_that_fails_for_good_writes_no_other(engine: Engine) -> None:
    handle(engine, "*")
    fail(engine)
    (run,) = engine.claim(knows=["on_failure"])

    engine.settle(run, Failed(ERROR))

    assert len(failure_jobs(engine)) == 1
    assert engine.counts().failed == 2


def test_a_stopped_run_that_fails_is_cancelled_and_calls_no_handler(engine: Engine) -> None:
    handle(engine, "*")
    engine.join()
    engine.add("x")
    (run,) = engine.claim()
    engine.send(lifecycle.cancel(engine.keys, [("x", None)]))

    engine.settle(run, Failed(ERROR))

    assert engine.status("x") == "cancelled"
    assert failure_jobs(engine) == []


def test_a_failed_life_of_a_series_calls_the_handler_and_goes_on(engine: Engine) -> None:
    handle(engine, "*")

    fail(engine, options={"again": True, "every": 1000})

    assert len(failure_jobs(engine)) == 1
    assert engine.status("x") == "scheduled"
    assert [event.type for event in engine.events()][-3:] == ["failed", "added", "repeated"]
