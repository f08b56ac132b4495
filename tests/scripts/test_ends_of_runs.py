"""Every end of a run, alone, beside a twin and in a series, and each accepted once."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from skep import lifecycle
from skep.core.outcome import Cancelled, Failed, Outcome, Postponed, Retried, Returned, Stalled, Succeeded
from tests.support.engine import Engine

ERROR = b'{"type":"Oops","message":"no"}'
LATER = 60_000
NEXT = 1_000_000_000 + 3_600_000
# Per end: its event, whether it ends the life, and where the job goes if it does not.
ENDS: dict[str, tuple[Outcome, str, bool, str]] = {
    "succeeded": (Succeeded(b"7", NEXT), "succeeded", True, ""),
    "failed": (Failed(ERROR, next_due=NEXT), "failed", True, ""),
    "cancelled": (Cancelled("enough", NEXT), "cancelled", True, ""),
    "retried now": (Retried(0, ERROR), "retrying", False, "waiting"),
    "retried later": (Retried(LATER, ERROR), "retrying", False, "retrying"),
    "timed out": (Retried(LATER, ERROR, timeout=True), "retrying", False, "retrying"),
    "postponed": (Postponed(LATER), "retrying", False, "scheduled"),
    "stalled": (Stalled(ERROR), "stalled", False, "waiting"),
    "stalled once too often": (Stalled(ERROR, NEXT), "failed", True, ""),
    "returned": (Returned(), "returned", False, "waiting"),
}
SERIES: dict[str, dict[str, Any]] = {
    "alone": {},
    "every": {"again": True, "every": 5000},
    "last of a series": {"again": 0, "every": 5000},
    "cron": {"again": True, "cron": "0 * * * *", "slot": 1_000_000_000},
}
CELLS = list(product(ENDS, SERIES, (False, True), (False, True)))


@pytest.mark.parametrize(("end", "series", "twin", "stop"), CELLS)
def test_each_end_leads_to_where_the_table_says(engine: Engine, end: str, series: str, twin: bool, stop: bool) -> None:
    outcome, event, ends, goes_to = ENDS[end]
    options = dict(SERIES[series])
    if end == "stalled once too often":
        options["max_stalls"] = 0
    engine.join()
    engine.add("x", 1, options=options)
    (run,) = engine.claim()
    if stop:
        engine.send(lifecycle.cancel(engine.keys, [("x", None)]))
    if twin:
        engine.add("x", 2)
    engine.news()

    accepted = engine.twice(lifecycle.leave_run(engine.keys, "w", [(run, outcome)]))

    if stop and event != "succeeded":
        event, ends = "cancelled", True
    follows = ends and series in ("every", "cron") and not stop
    expected = [event] + (["repeated"] if follows else [])
    if twin:
        expected.append("merged" if follows or not ends else "unblocked")
    job = engine.job("x")
    assert accepted == [True]
    assert [each.type for each in engine.news()] == expected
    assert job.twin is None
    if twin:
        assert (str(job.status), job.head.data) == ("waiting", b"2")
    elif follows:
        assert str(job.status) == "scheduled"
        assert job.head.due == (NEXT if series == "cron" else 1_000_005_000)
    else:
        assert str(job.status) == (event if ends else goes_to)
    assert engine.counts().total == 1
    assert engine.counts().active == 0


@pytest.mark.parametrize("end", ENDS)
def test_a_second_end_of_the_same_run_is_refused_and_changes_nothing(engine: Engine, end: str) -> None:
    engine.join()
    engine.add("x", 1)
    (run,) = engine.claim()
    engine.settle(run, ENDS[end][0])
    before = engine.photo()

    accepted = engine.settle(run, Succeeded(b"8"))

    assert not accepted
    assert engine.photo().but("lanes") == before.but("lanes")


def test_many_ends_in_one_trip_are_judged_one_by_one(engine: Engine) -> None:
    engine.join()
    for id in "abcdef":
        engine.add(id, id)
    runs = {run.id: run for run in engine.claim(slots=6)}
    engine.settle(runs["b"], Succeeded(b"1"))
    ends: list[tuple[lifecycle.Run, Outcome]] = [
        (runs["a"], Succeeded(b"1")),
        (runs["b"], Failed(ERROR)),
        (runs["c"], Retried(0, ERROR)),
        (runs["a"], Failed(ERROR)),
        (runs["d"], Succeeded(b"2")),
        (runs["e"], Returned()),
        (runs["f"], Failed(ERROR, timeout=True)),
    ]

    accepted = engine.twice(lifecycle.leave_run(engine.keys, "w", ends))

    assert accepted == [True, False, True, False, True, True, True]
    assert {id: engine.status(id) for id in "abcdef"} == {
        "a": "succeeded",
        "b": "succeeded",
        "c": "waiting",
        "d": "succeeded",
        "e": "waiting",
        "f": "failed",
    }


def test_the_counts_of_a_life_are_told_with_its_end(engine: Engine) -> None:
    engine.join()
    engine.add("x", 1)
    for outcome in (
        Retried(0, ERROR),
        Retried(0, ERROR, timeout=True),
        Stalled(ERROR),
        Returned(),
        Postponed(0),
    ):
        engine.settle(engine.claim()[0], outcome)
    first = engine.now

    engine.settle(engine.claim()[0], Succeeded(b"7"))

    known, event = engine.job("x").known, engine.events()[-1]
    assert (known.runs, known.attempts, known.failures, known.stalls, known.timeouts) == (6, 4, 2, 1, 1)
    told = [event.details[name] for name in ("run", "attempts", "failures", "stalls", "timeouts", "began", "result")]
    assert told == [6, 4, 2, 1, 1, first, "7"]
