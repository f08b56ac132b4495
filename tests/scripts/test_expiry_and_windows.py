"""Jobs that are only wanted for a time, and ids that are only taken once in a time."""

from __future__ import annotations

import pytest

from skep import lifecycle
from skep.core.outcome import Returned, Succeeded
from tests.support.engine import Engine


@pytest.mark.parametrize("state", ["waiting", "scheduled", "held"])
def test_a_job_that_has_not_begun_by_then_is_cancelled_as_expired(engine: Engine, state: str) -> None:
    engine.add("x", options={"lasts": 1000}, delay=5000 if state == "scheduled" else None)
    if state == "held":
        engine.send(lifecycle.hold(engine.keys, [("x", None)]))
    engine.now += 999
    engine.upkeep()
    before = engine.status("x")

    engine.now += 1
    engine.upkeep()

    assert before == state
    job = engine.job("x")
    assert (str(job.status), job.reason) == ("cancelled", "expired")


def test_a_claim_never_takes_what_has_expired_in_the_meantime(engine: Engine) -> None:
    engine.join()
    for n in range(200):
        engine.add(f"j{n}", options={"lasts": 1000})
    engine.now += 1000

    runs = [run for _ in range(10) for run in engine.claim(slots=100)]

    assert runs == []
    assert engine.counts().cancelled == 200


def test_a_job_whose_first_run_has_begun_does_not_expire(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"lasts": 1000})
    (run,) = engine.claim()
    engine.now += 2000
    engine.upkeep()
    while_it_runs = engine.status("x")

    engine.settle(run, Returned())
    engine.upkeep()

    assert (while_it_runs, engine.status("x")) == ("active", "waiting")


def test_expiry_goes_on_while_the_queue_is_paused(engine: Engine) -> None:
    engine.add("x", options={"lasts": 1000})
    engine.send(lifecycle.pause(engine.keys, wanted=True))
    engine.now += 1000

    engine.upkeep()

    assert engine.status("x") == "cancelled"


def test_an_update_moves_the_end_of_a_jobs_time_and_takes_it_away(engine: Engine) -> None:
    for id in "ab":
        engine.add(id, options={"lasts": 1000})
    engine.send(lifecycle.update(engine.keys, [("a", None)], options={"lasts": 3000}))
    engine.send(lifecycle.update(engine.keys, [("b", None)], options={"lasts": False, "expires": False}))
    engine.now += 2000
    engine.upkeep()
    between = engine.status("a")

    engine.now += 1000
    engine.upkeep()

    assert (between, engine.status("a"), engine.status("b")) == ("waiting", "cancelled", "waiting")


def test_an_equal_add_is_ignored_for_the_whole_window_whatever_became_of_the_job(engine: Engine) -> None:
    engine.join()
    first = engine.add("x", conflict="unique", window=10_000, options={"keep": 0})
    (run,) = engine.claim()
    engine.settle(run, Succeeded(b"1"))

    within = engine.add("x", conflict="unique", window=10_000)
    engine.now += 10_000
    after = engine.add("x", conflict="unique", window=10_000)

    assert [each.outcome for each in (first, within, after)] == ["added", "ignored", "added"]


def test_windows_are_forgotten_when_they_are_over(engine: Engine) -> None:
    for n in range(50):
        engine.add(f"j{n}", conflict="unique", window=1000, options={"keep": 0})
    engine.send(lifecycle.remove(engine.keys, [(f"j{n}", None) for n in range(50)]))
    engine.now += 1000

    engine.upkeep()

    assert (engine.size("windows"), engine.size("timers")) == (0, 0)


def test_without_a_window_an_equal_add_is_ignored_only_while_one_is_unfinished(engine: Engine) -> None:
    engine.join()
    engine.add("x", conflict="unique")
    (run,) = engine.claim()
    while_it_runs = engine.add("x", conflict="unique")
    engine.settle(run, Succeeded(b"1"))

    after = engine.add("x", conflict="unique")

    assert (while_it_runs.outcome, after.outcome) == ("ignored", "added")


def test_a_full_queue_refuses_a_whole_trip_and_counts_only_what_waits(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"max_waiting": 3}))
    engine.add("later", delay=10_000)
    engine.add("a")
    engine.add("b")
    from tests.support.engine import Refused, draft

    with pytest.raises(Refused, match="QueueFull 3"):
        engine.twice(lifecycle.upsert(engine.keys, [draft("c"), draft("d")]))
    with pytest.raises(Refused, match="QueueFull 3"):
        engine.twice(lifecycle.add(engine.keys, draft("", generated=True), [("c", b"1"), ("d", b"1")]))
    engine.add("a", "known ids are welcome")
    engine.add("c")

    assert engine.counts().waiting == 3
