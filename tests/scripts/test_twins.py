"""The second job of an active id: it remembers every flag it was added with."""

from __future__ import annotations

from typing import Any

import pytest

from skep import lifecycle
from skep.core.outcome import Failed, Retried, Succeeded
from skep.lifecycle import Flags
from tests.support.engine import Engine

ERROR = b'{"type":"Oops"}'
START = 1_000_000_000
LATER, EARLY = START + 50_000, START + 5_000


def active(engine: Engine, **options: Any) -> lifecycle.Run:
    engine.join()
    engine.add("x", "first", options=options)
    return engine.claim()[0]


@pytest.mark.parametrize(
    ("flags", "due"),
    [
        ([(True, LATER)], LATER),
        ([(False, LATER)], START + 20_000),
        ([("if_later", LATER)], LATER),
        ([("if_later", EARLY)], START + 20_000),
        ([("if_earlier", EARLY)], EARLY),
        ([("if_earlier", LATER)], START + 20_000),
        ([(True, EARLY), ("if_later", LATER)], LATER),
        ([("if_later", LATER), ("if_earlier", EARLY)], EARLY),
        ([("if_earlier", EARLY), ("if_later", LATER), (False, START)], LATER),
    ],
)
def test_a_merge_moves_the_time_as_all_the_adds_together_would_have(
    engine: Engine, flags: list[tuple[Any, int]], due: int
) -> None:
    run = active(engine)
    for run_at, time in flags:
        engine.add("x", "twin", due=time, flags=Flags(run_at=run_at))

    engine.settle(run, Retried(20_000, ERROR))

    job = engine.job("x")
    assert job.twin is None
    assert job.head.due == due
    assert engine.counts().total == 1


def test_a_merge_changes_what_the_flags_allow_and_leaves_the_rest(engine: Engine) -> None:
    run = active(engine, retries=5, meta="1")
    engine.add("x", "kept out", flags=Flags(data=False, run_at=False), options={"retries": 7, "meta": "2"})
    engine.add("x", "later", flags=Flags(data=False, options=frozenset({"meta"})), options={"retries": 9, "meta": "3"})

    engine.settle(run, Retried(0, ERROR))

    job = engine.job("x")
    assert job.head.data == b'"first"'
    assert (job.head.options["retries"], job.head.options["meta"]) == (7, "3")


@pytest.mark.parametrize("counts", [True, False])
def test_a_merge_resets_the_counts_if_one_of_the_adds_said_so(engine: Engine, counts: bool) -> None:
    run = active(engine)
    engine.add("x", "one", flags=Flags(counts=counts))
    engine.add("x", "two", flags=Flags(counts=False))

    engine.settle(run, Retried(0, ERROR))

    assert engine.job("x").known.failures == (0 if counts else 1)


def test_a_twin_goes_on_with_a_life_of_its_own_when_the_run_ends_for_good(engine: Engine) -> None:
    run = active(engine)
    engine.add("x", "twin", due=LATER, task="t", options={"name": "n"})

    engine.settle(run, Failed(ERROR))

    job = engine.job("x")
    assert (str(job.status), job.head.due, job.head.task, job.head.data) == ("scheduled", LATER, "t", b'"twin"')
    assert job.known.previous is not None
    assert (job.known.previous.life, job.known.previous.status, job.known.previous.error) == (2, "failed", "Oops")
    assert job.known.failures == 0


def test_an_expired_twin_goes_and_leaves_the_run_alone(engine: Engine) -> None:
    run = active(engine)
    engine.add("x", "twin", options={"lasts": 1000})
    engine.now += 1000

    engine.upkeep()

    assert engine.job("x").twin is None
    assert engine.settle(run, Succeeded(b"1"))
    assert engine.events()[-2].details["reason"] == "expired"


def test_a_handle_of_the_twin_acts_on_the_twin_also_beside_a_series(engine: Engine) -> None:
    run = active(engine, again=True, every=1000)
    life = engine.add("x", "twin").life

    cancelled = engine.twice(lifecycle.cancel(engine.keys, [("x", life)]))

    assert cancelled == ["x"]
    assert engine.job("x").twin is None
    assert not engine.job("x").stop
    assert engine.settle(run, Succeeded(b"1"))
    assert engine.status("x") == "scheduled"


def test_those_who_wait_for_a_twin_hear_into_which_life_it_was_merged(engine: Engine) -> None:
    from skep import views

    run = active(engine)
    life = engine.add("x", "twin").life
    engine.send(views.expect(engine.keys, [("x", life)], ms=60_000))

    engine.settle(run, Retried(0, ERROR))

    ((_, told),) = engine.command("XRANGE", engine.keys.answers, "-", "+")
    assert told == [b"id", b"x", b"life", str(life).encode(), b"status", b"merged", b"text", b"2"]
