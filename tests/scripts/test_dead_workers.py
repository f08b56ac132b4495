"""Leases: what becomes of the runs of workers that die, fall silent, freeze, or are told otherwise than they think."""

from __future__ import annotations

import pytest

from skep import lifecycle
from skep.core.outcome import Failed, Returned, Succeeded
from tests.support.engine import LEASE, Engine

ERROR = b'{"type":"Oops"}'


def let_pass(engine: Engine, ms: int, *healthy: str) -> None:
    """Time passes while these workers renew, often enough."""
    for _ in range(ms // 5000):
        engine.now += 5000
        for worker in healthy:
            engine.renew(worker, [run for run in engine.lately if run.lease.startswith(f"{worker} ".encode())])


def test_a_dead_workers_job_waits_again_within_its_lease_and_five_seconds(engine: Engine) -> None:
    engine.join("dead")
    engine.join("healthy")
    engine.add("x")
    engine.claim("dead")

    let_pass(engine, LEASE + 5000, "healthy")

    assert engine.status("x") == "waiting"
    assert engine.job("x").known.stalls == 1
    assert [event.type for event in engine.events()][-2:] == ["fenced", "stalled"]


def test_a_job_that_kills_its_workers_fails_after_the_stalls_that_are_forgiven(engine: Engine) -> None:
    engine.add("x", options={"max_stalls": 2})
    for n in range(3):
        engine.join(f"w{n}")
        engine.claim(f"w{n}")
        engine.send(lifecycle.leave(engine.keys, f"w{n}", died=True))

    job = engine.job("x")

    assert (str(job.status), job.known.stalls, job.known.failures) == ("failed", 3, 0)
    assert job.error is not None
    assert (job.error.type, job.error.kind) == ("WorkerDied", "stall")


def test_the_queues_own_number_of_stalls_holds_where_a_job_names_none(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"max_stalls": 0}))
    engine.add("x")
    engine.add("y", options={"max_stalls": 1})
    engine.join()
    engine.claim(slots=2)

    engine.send(lifecycle.leave(engine.keys, "w", died=True))

    assert (engine.status("x"), engine.status("y")) == ("failed", "waiting")


def test_what_a_stopping_worker_hands_back_uses_nothing_up(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"max_stalls": 0})
    engine.add("y")
    engine.claim()

    engine.send(lifecycle.leave(engine.keys, "w"))

    job = engine.job("x")
    assert (str(job.status), job.known.stalls, job.known.attempts) == ("waiting", 0, 0)
    assert engine.photo().waiting[3] == ["x", "y"]


def test_thousands_of_runs_of_a_dead_worker_are_taken_back_in_slices(plain_engine: Engine) -> None:
    engine = plain_engine
    engine.join("dead")
    engine.join("healthy")
    ids = [f"j{n:04d}" for n in range(3000)]
    for first in range(0, len(ids), 500):
        engine.add_plain(*ids[first : first + 500])
        engine.claim("dead", 500)
    for id in "ab":
        engine.add(id)
    engine.claim("healthy", 2)
    let_pass(engine, LEASE - 5000, "healthy")
    engine.now = engine.now + 5000

    slices = engine.upkeep(limit=200)

    counts = engine.counts()
    assert slices >= 3000 / 500
    assert (counts.active, counts.waiting) == (2, 3000)
    assert engine.size("dead") == 0
    assert [event.type for event in engine.events()].count("stalled") == 3000


def test_a_worker_that_joins_again_keeps_its_new_runs_while_its_old_ones_are_taken_back(plain_engine: Engine) -> None:
    engine = plain_engine
    engine.join("frozen")
    engine.join("healthy")
    ids = [f"j{n:04d}" for n in range(2000)]
    for first in range(0, len(ids), 500):
        engine.add_plain(*ids[first : first + 500])
        engine.claim("frozen", 500)
    let_pass(engine, LEASE, "healthy")
    engine.add("new", options={"priority": 10})
    engine.join("frozen")

    (fresh,) = engine.claim("frozen", 1)
    engine.upkeep(limit=100)

    assert fresh.id == "new"
    assert engine.status("new") == "active"
    assert engine.counts().active == 1
    assert engine.settle(fresh, Succeeded(b"1"))


@pytest.mark.parametrize("silence", [LEASE // 2 + 1, LEASE * 10])
def test_after_a_silence_nobody_is_blamed(engine: Engine, silence: int) -> None:
    engine.join("a")
    engine.join("b")
    engine.add("x")
    (run,) = engine.claim("a")

    engine.now = engine.now + silence
    engine.renew("b")

    assert engine.renew("a", [run]) is not None
    assert engine.status("x") == "active"


def test_a_worker_that_joins_after_a_silence_does_not_hide_it(engine: Engine) -> None:
    engine.join("a")
    engine.add("x")
    (run,) = engine.claim("a")

    engine.now = engine.now + 10 * LEASE
    engine.join("new")
    engine.upkeep()

    assert engine.renew("a", [run]) is not None
    assert engine.status("x") == "active"


def test_a_backward_step_of_the_clock_does_not_prolong_a_lease_for_ever(engine: Engine) -> None:
    engine.join("dead")
    engine.join("healthy")
    engine.add("x")
    engine.claim("dead")
    engine.now = engine.now - 10 * LEASE
    engine.renew("healthy")

    let_pass(engine, LEASE, "healthy")

    assert engine.status("x") == "waiting"


def test_a_fenced_worker_is_told_so_and_what_its_runs_say_is_refused(engine: Engine) -> None:
    engine.join("frozen")
    engine.join("healthy")
    engine.add("x")
    (run,) = engine.claim("frozen")
    let_pass(engine, LEASE, "healthy")

    renewed = engine.renew("frozen", [run])
    settled = engine.settle(run, Succeeded(b"1"))
    noted = engine.send(lifecycle.note(engine.keys, [("x", run.lease, "p", b"50", "", 0)]))

    assert renewed is None
    assert not settled
    assert noted == "-"
    assert engine.send(lifecycle.claim(engine.keys, "frozen", number=9, slots=1, lease=LEASE, knows=b"\x90")) is None


def test_a_worker_that_is_back_gets_the_same_job_and_only_the_new_run_may_end_it(engine: Engine) -> None:
    engine.join("a")
    engine.join("healthy")
    engine.add("x")
    (old,) = engine.claim("a")
    let_pass(engine, LEASE, "healthy")
    engine.join("a")
    (new,) = engine.claim("a")

    assert not engine.settle(old, Succeeded(b"1"))
    assert engine.settle(new, Succeeded(b"2"))
    assert engine.job("x").result == b"2"


def test_a_renewal_names_runs_that_are_lost_and_runs_that_are_asked_to_stop(engine: Engine) -> None:
    engine.join()
    for id in "abc":
        engine.add(id)
    runs = engine.claim(slots=3)
    engine.settle(runs[0], Succeeded(b"1"))
    engine.send(lifecycle.cancel(engine.keys, [("b", None)]))

    told = engine.renew("w", runs)

    assert told is not None
    assert (told.lost, told.stop) == (["a"], ["b"])


def test_runs_whose_claim_was_never_heard_of_are_returned_by_the_next_renewal(engine: Engine) -> None:
    engine.join()
    for id in "abc":
        engine.add(id)
    heard = engine.claim(slots=1)
    engine.claim(slots=2)

    before = engine.renew("w", heard, answered=1)
    still = engine.counts().active
    engine.renew("w", heard, answered=2)

    assert before is not None
    assert (still, engine.counts().active) == (3, 1)
    assert engine.photo().waiting[3] in (["b", "c"], ["c", "b"])
    assert engine.job("b").known.stalls == 0


def test_a_lost_claim_said_again_gives_the_same_runs_as_far_as_they_still_run(engine: Engine) -> None:
    engine.join()
    for id in "abcd":
        engine.add(id)
    first = engine.claim(slots=3)
    engine.settle(first[1], Failed(ERROR))

    again = engine.claim(slots=3, number=1)

    assert [run.id for run in again] == ["a", "c"]
    assert engine.status("d") == "waiting"


def test_a_server_that_forgot_a_claim_gives_its_jobs_out_again_and_the_first_runs_are_lost(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    before = engine.photo()
    (old,) = engine.claim()
    engine.restore(before)
    (new,) = engine.claim()

    told = engine.renew("w", [old])
    refused = engine.settle(old, Returned())

    assert told is not None
    assert told.lost == ["x"]
    assert not refused
    assert engine.status("x") == "waiting", "the new run was not named: it goes back"
    assert not engine.settle(new, Succeeded(b"1"))


def test_a_server_that_forgot_an_end_is_told_by_the_renewal_that_names_no_run(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    (run,) = engine.claim()
    before = engine.photo()
    engine.settle(run, Succeeded(b"1"))
    engine.restore(before)

    engine.renew("w")

    assert engine.status("x") == "waiting"
    assert engine.job("x").known.stalls == 0


def test_a_fenced_worker_leaves_its_timer_duty_to_others(engine: Engine) -> None:
    engine.join("dead")
    engine.join("healthy")
    engine.add("x", delay=10 * LEASE)
    engine.claim("dead")
    assert engine.get("queue", "timer_by") == b"dead"

    let_pass(engine, LEASE, "healthy")

    assert engine.get("queue", "timer_by") is None
    assert engine.size("wake") == 1
