"""The defects of the queues that skep grew out of, each avoided. The numbers are those of `docs/seeds.md`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from skep import lifecycle, views
from skep.core.duration import to_ms
from skep.core.outcome import Failed, Retried, Stalled, Succeeded
from skep.core.record import pack
from skep.lifecycle import Flags
from tests.support.engine import LEASE, Engine

ERROR = b'{"type":"Oops"}'


def running(engine: Engine, **terms: Any) -> lifecycle.Run:
    engine.join()
    engine.add("x", **terms)
    return engine.claim()[0]


def test_d1_a_blocked_job_without_a_time_cannot_be_taken(engine: Engine) -> None:
    running(engine)
    engine.add("x", due=0)

    runs = engine.claim(slots=10)

    assert runs == []
    assert engine.counts().blocked == 1


@pytest.mark.parametrize("run_at", [False, "if_earlier", "if_later", True])
def test_d2_a_twin_goes_on_whatever_its_flags_when_the_run_is_over(engine: Engine, run_at: Any) -> None:
    run = running(engine)
    engine.add("x", due=engine.now, flags=Flags(run_at=run_at))

    engine.settle(run, Succeeded(b"1"))

    assert [run.id for run in engine.claim()] == ["x"]


def test_d3_a_lost_lease_is_told_to_who_renews_it(engine: Engine) -> None:
    run = running(engine)
    engine.settle(run, Retried(0, ERROR))

    told = engine.renew("w", [run])

    assert told is not None
    assert told.lost == ["x"]


def test_d4_a_failure_handler_gets_its_job_although_it_never_had_one_before(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"on_failure": pack({"*": True})}))

    engine.settle(running(engine), Failed(ERROR))

    assert [run.record is not None for run in engine.claim(knows=["on_failure"])] == [True]


def test_d5_a_failure_raises_the_count_and_not_the_limit(engine: Engine) -> None:
    engine.settle(running(engine, options={"retries": 2}), Retried(0, ERROR))

    job = engine.job("x")
    assert (job.known.failures, job.head.options["retries"]) == (1, 2)


def test_d6_a_worker_that_dies_on_a_later_retry_is_noticed_as_soon_as_on_the_first(engine: Engine) -> None:
    engine.join("healthy")
    running(engine, options={"backoff": '["linear",600000]'})
    engine.settle(engine.lately[0], Retried(600_000, ERROR))
    engine.now += 600_000
    engine.renew("healthy")
    engine.join("w")
    engine.claim("w")

    for _ in range(7):
        engine.now += 5000
        engine.renew("healthy")

    assert engine.status("x") == "waiting"


def test_d7_a_stall_is_no_failure_and_waits_for_no_backoff(engine: Engine) -> None:
    engine.settle(running(engine, options={"retries": 0}), Stalled(ERROR))

    job = engine.job("x")
    assert (str(job.status), job.known.stalls, job.known.failures) == ("waiting", 1, 0)


def test_d8_of_two_runs_of_one_job_only_the_one_that_holds_the_lease_ends_it(engine: Engine) -> None:
    engine.join("late")
    engine.join("healthy")
    engine.add("x")
    (old,) = engine.claim("late")
    for _ in range(LEASE // 5000):
        engine.now += 5000
        engine.renew("healthy")
    (new,) = engine.claim("healthy")

    said = engine.settle(old, Succeeded(b"1")), engine.settle(new, Succeeded(b"2"))

    assert said == (False, True)
    assert [event.type for event in engine.events()].count("succeeded") == 1


def test_d9_a_job_that_kills_every_worker_does_not_go_round_for_ever(engine: Engine) -> None:
    engine.add("x")
    deaths = 0

    while engine.status("x") == "waiting":
        engine.join(f"w{deaths}")
        engine.claim(f"w{deaths}")
        engine.send(lifecycle.leave(engine.keys, f"w{deaths}", died=True))
        deaths += 1

    assert (engine.status("x"), deaths) == ("failed", 4)


def test_d10_whoever_comes_by_does_what_time_brings_and_nobody_does_it_twice(engine: Engine) -> None:
    for worker in "ab":
        engine.join(worker)
    engine.add("x", delay=1000)
    engine.add("y", options={"lasts": 1000})
    engine.now += 1000

    engine.renew("a")
    engine.renew("b")

    assert engine.photo().waiting[3] == ["x"]
    assert [event.type for event in engine.events()].count("cancelled") == 1


def test_d11_priorities_hold_and_a_worker_is_woken_by_one_marker(engine: Engine) -> None:
    engine.join()
    for priority in (60, 10, 40):
        engine.add(f"p{priority}", options={"priority": priority})

    markers = engine.size("wake")

    assert markers == 1
    assert [run.id for run in engine.claim(slots=3)] == ["p10", "p40", "p60"]


def test_d12_a_job_is_set_aside_by_a_state_of_its_own_and_comes_back_unharmed(engine: Engine) -> None:
    engine.settle(running(engine), Retried(60_000, ERROR))
    before = engine.job("x")

    engine.send(lifecycle.hold(engine.keys, [("x", None)]))
    held = engine.status("x")
    engine.send(lifecycle.release(engine.keys, [("x", None)]))

    assert held == "held"
    assert engine.job("x") == before


def test_d13_a_delay_is_seconds_or_a_timedelta_and_milliseconds_inside(engine: Engine) -> None:
    engine.add("x", delay=to_ms("delay", 1.5))
    engine.add("y", delay=to_ms("delay", timedelta(seconds=1.5)))

    assert [engine.job(id).head.due - engine.now for id in "xy"] == [1500, 1500]


def test_d14_a_result_that_is_not_kept_still_reaches_who_waits_for_it(engine: Engine) -> None:
    run = running(engine, options={"keep": 0})
    life = engine.job("x").head.life
    since = engine.send(views.expect(engine.keys, [("x", life)], ms=10_000)).last

    engine.settle(run, Succeeded(b"42"))

    ((_, fields),) = engine.command("XRANGE", engine.keys.answers, f"({since}", "+")
    assert fields[-1] == b"42"
    assert engine.status("x") == ""


def test_d15_a_listener_that_was_away_reads_what_it_missed(engine: Engine) -> None:
    engine.settle(running(engine), Succeeded(b"42"))
    seen = 2

    missed = engine.events(since=seen)

    assert [(event.type, event.details.get("result")) for event in missed] == [("started", None), ("succeeded", "42")]


def test_d16_finished_jobs_go_when_their_time_is_over_and_nobody_reviews_anything(engine: Engine) -> None:
    engine.settle(running(engine), Succeeded(b"42"))
    engine.now += 3_600_000

    engine.join("anybody")

    assert engine.counts().total == 0
