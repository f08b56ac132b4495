"""Jobs that run again and again under one id: by delay, or by a cron line whose times the callers work out."""

from __future__ import annotations

from typing import Any

import pytest

from skep import lifecycle
from skep.core.outcome import Cancelled, Failed, Retried, Succeeded
from tests.support.engine import Engine

ERROR = b'{"type":"Oops"}'
START = 1_000_000_000
CRON = {"again": True, "cron": "0 * * * *", "tz": "Europe/Paris", "slot": START + 5000}


def claimed(engine: Engine) -> lifecycle.Run:
    (run,) = engine.claim()
    return run


def wanted(engine: Engine) -> list[lifecycle.Wanted]:
    return engine.send(lifecycle.upkeep(engine.keys)).wanted


def test_a_series_runs_once_and_so_many_times_more(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": 2, "every": 1000})
    lives = []

    for _ in range(3):
        run = claimed(engine)
        lives.append(engine.job("x").head.life)
        engine.settle(run, Succeeded(b"1"))
        engine.now += 1000

    assert len(set(lives)) == 3
    assert engine.status("x") == "succeeded"
    assert [event.type for event in engine.events()].count("repeated") == 2


def test_a_series_goes_on_after_a_failure_and_remembers_it(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 2000})

    engine.settle(claimed(engine), Failed(ERROR))

    job = engine.job("x")
    assert (str(job.status), job.head.due, job.known.failures) == ("scheduled", START + 2000, 0)
    assert job.known.previous is not None
    assert (job.known.previous.status, job.known.previous.error) == ("failed", "Oops")


@pytest.mark.parametrize("how", ["cancelled", "removed", "cancelled while it runs"])
def test_cancelling_and_removing_end_a_series(engine: Engine, how: str) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 2000})
    run = claimed(engine) if how == "cancelled while it runs" else None

    call = lifecycle.remove if how == "removed" else lifecycle.cancel
    engine.send(call(engine.keys, [("x", None)]))
    if run:
        engine.settle(run, Failed(ERROR))
    engine.now += 10_000
    engine.upkeep()

    assert engine.status("x") == ("" if how == "removed" else "cancelled")


def test_a_cancelled_series_that_is_retried_runs_once(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 2000})
    engine.send(lifecycle.cancel(engine.keys, [("x", None)]))

    engine.send(lifecycle.revive(engine.keys, [("x", None)]))
    engine.settle(claimed(engine), Succeeded(b"1"))

    assert engine.status("x") == "succeeded"


def test_a_run_that_cancels_itself_is_followed_by_the_next(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 2000})

    engine.settle(claimed(engine), Cancelled("not today"))

    assert engine.status("x") == "scheduled"


def test_an_add_that_names_no_terms_leaves_a_series_going(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 2000})
    engine.add("x", "new")

    engine.settle(claimed(engine), Succeeded(b"1"))

    assert (engine.status("x"), engine.job("x").head.data) == ("scheduled", b'"new"')


def test_an_expired_life_of_a_series_is_followed_by_the_next_which_lasts_as_long(engine: Engine) -> None:
    engine.add("x", delay=5000, options={"again": True, "every": 2000, "lasts": 1000})
    engine.now += 1000

    engine.upkeep()

    job = engine.job("x")
    assert (str(job.status), job.head.due, job.head.options["expires"]) == ("scheduled", START + 3000, START + 4000)


def test_a_cron_run_says_when_the_next_one_is_due_and_a_time_in_the_past_means_now(engine: Engine) -> None:
    engine.join()
    engine.add("x", options=CRON, due=START)

    engine.settle(claimed(engine), Succeeded(b"1", START + 9000))
    told = engine.job("x").head
    engine.now += 20_000
    engine.settle(claimed(engine), Succeeded(b"1", START + 10_000))

    assert (told.due, told.options["slot"]) == (START + 9000, START + 9000)
    assert engine.job("x").head.due == START + 20_000


@pytest.mark.parametrize("state", ["waiting", "blocked"])
def test_the_next_time_of_an_expired_cron_life_is_asked_for_and_then_used(engine: Engine, state: str) -> None:
    engine.join()
    if state == "blocked":
        engine.add("x")
        claimed(engine)
    engine.add("x", options=CRON | {"lasts": 1000}, due=START + 5000)
    engine.now += 2000

    asked = wanted(engine)
    unchanged = engine.counts()
    engine.upkeep({each.key: START + 7000 for each in asked})

    (ask,) = asked
    assert (ask.id, ask.cron, ask.tz, ask.slot, ask.began) == (
        "x",
        "0 * * * *",
        "Europe/Paris",
        START + 5000,
        START + 2000,
    )
    assert unchanged == engine.counts()
    job = engine.job("x").head if state == "waiting" else engine.job("x").twin
    assert job is not None
    assert job.due == START + 7000


def test_a_cron_run_of_a_dead_worker_waits_for_its_next_time_only_where_this_stall_is_its_last(engine: Engine) -> None:
    engine.join()
    for id, stalls in (("often", 3), ("once", 0)):
        engine.add(id, options=CRON | {"max_stalls": stalls}, due=START)
    engine.claim(slots=2)
    began = engine.now
    engine.now += 7000

    more = engine.send(lifecycle.leave(engine.keys, "w", died=True))
    asked = wanted(engine)
    after_asking = engine.status("often"), engine.status("once")
    engine.upkeep({each.key: START + 60_000 for each in asked})

    assert more
    assert [(ask.id, ask.slot, ask.began) for ask in asked] == [("once", START + 5000, began)]
    assert after_asking == ("waiting", "active")
    assert engine.job("once").head.due == START + 60_000
    assert engine.size("dead") == 0


def test_one_run_per_due_time_however_many_workers_there_are(engine: Engine) -> None:
    workers = [engine.join(f"w{n}") for n in range(5)]
    engine.add("x", options=CRON, due=START)

    runs = [run for worker in workers for run in engine.claim(worker)]

    assert len(runs) == 1


def test_a_revived_cron_job_goes_on_from_now(engine: Engine) -> None:
    engine.join()
    engine.add("x", options=CRON | {"again": 0}, due=START)
    engine.settle(claimed(engine), Succeeded(b"1"))
    engine.now += 50_000

    engine.send(lifecycle.revive(engine.keys, [("x", None)]))

    assert engine.job("x").head.options["slot"] == START + 50_000


def test_a_retry_of_a_series_is_of_the_same_life(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": 1, "every": 1000})

    engine.settle(claimed(engine), Retried(0, ERROR))

    assert engine.job("x").head.life == 2
    assert engine.job("x").head.options["again"] == 1


def test_terms_of_a_series_can_be_changed_while_it_runs(engine: Engine) -> None:
    engine.join()
    engine.add("x", options={"again": True, "every": 1000})
    run = claimed(engine)
    terms: dict[str, Any] = {"every": 9000}

    engine.send(lifecycle.update(engine.keys, [("x", None)], options=terms))
    engine.settle(run, Succeeded(b"1"))

    assert engine.job("x").head.due == START + 9000
