"""What stays of finished jobs, and for how long."""

from __future__ import annotations

import pytest

from skep import lifecycle, views
from skep.core.outcome import Cancelled, Failed, Outcome, Succeeded
from tests.support.engine import Engine

HOUR = 3_600_000
ERROR = b'{"type":"Oops"}'
ENDS: dict[str, tuple[Outcome, int]] = {
    "succeeded": (Succeeded(b"1"), HOUR),
    "failed": (Failed(ERROR), 7 * 24 * HOUR),
    "cancelled": (Cancelled(), HOUR),
}


def finish(engine: Engine, *ids: str, outcome: Outcome | None = None, **options: object) -> None:
    engine.join()
    for id in ids:
        engine.add(id, options=options)
    runs = engine.claim(slots=len(ids))
    engine.send(lifecycle.leave_run(engine.keys, "w", [(run, outcome or Succeeded(b"1")) for run in runs]))


@pytest.mark.parametrize("end", ENDS)
def test_a_finished_job_is_kept_as_long_as_its_status_says_and_not_longer(engine: Engine, end: str) -> None:
    outcome, age = ENDS[end]
    finish(engine, "x", "y", outcome=outcome)
    engine.now += age - 1
    engine.upkeep()
    until_then = engine.counts().total

    engine.now += 1
    engine.upkeep()

    assert until_then == 2
    assert engine.counts().total == 0
    assert [engine.size(key) for key in ("jobs", "states", f"pruning_{end}")] == [0, 0, 0]


@pytest.mark.parametrize("end", ENDS)
def test_no_more_finished_jobs_are_kept_than_the_queue_says_and_the_oldest_go(engine: Engine, end: str) -> None:
    engine.send(lifecycle.configure(engine.keys, {f"max_{end}": 25}))
    ids = [f"j{n:02d}" for n in range(60)]
    for first in range(0, 60, 10):
        finish(engine, *ids[first : first + 10], outcome=ENDS[end][0])
        engine.now += 1

    engine.upkeep()

    assert sorted(engine.photo().jobs) == ids[35:]


def test_keep_of_a_jobs_own_beats_the_queues_retention(engine: Engine) -> None:
    finish(engine, "short", keep=1000)
    finish(engine, "ever", keep=True)
    finish(engine, "long", keep=100 * HOUR)
    finish(engine, "none", keep=0)
    finish(engine, "queue")
    at_once = sorted(engine.photo().jobs)

    engine.now += 1000
    engine.upkeep()
    then = sorted(engine.photo().jobs)
    engine.now += 200 * HOUR
    engine.upkeep()

    assert at_once == ["ever", "long", "queue", "short"]
    assert then == ["ever", "long", "queue"]
    assert sorted(engine.photo().jobs) == ["ever"]
    assert engine.get("queue", "exempt_succeeded") == b"1"


def test_exempt_jobs_do_not_count_towards_the_most_that_are_kept(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"max_succeeded": 2}))
    finish(engine, "a", "b", "c", keep=True)

    finish(engine, "d", "e")
    engine.upkeep()

    assert engine.counts().succeeded == 5


def test_a_job_that_lives_again_is_not_pruned_with_its_former_life(engine: Engine) -> None:
    finish(engine, "x", "y")
    engine.send(lifecycle.revive(engine.keys, [("x", None)]))

    engine.now += HOUR
    engine.upkeep()

    assert engine.status("x") == "waiting"
    assert engine.status("y") == ""


def test_a_job_cancelled_with_a_keep_of_its_own_is_kept_so_long_and_forgets_it_when_it_lives_again(
    engine: Engine,
) -> None:
    engine.add("x")
    engine.send(lifecycle.cancel(engine.keys, [("x", None)], keep=5000))
    engine.send(lifecycle.revive(engine.keys, [("x", None)]))
    engine.now += 5000
    engine.upkeep()

    status, timers = engine.status("x"), engine.size("timers")

    assert (status, timers) == ("waiting", 0)
    assert engine.get("queue", "exempt_cancelled") == b"0"


@pytest.mark.parametrize("how", ["hour", "at once"])
def test_the_result_of_a_job_that_is_not_kept_reaches_those_who_wait(engine: Engine, how: str) -> None:
    engine.join()
    life = engine.add("x", options={"keep": 0} if how == "at once" else {}).life
    engine.send(views.expect(engine.keys, [("x", life)], ms=60_000))
    (run,) = engine.claim()

    engine.settle(run, Succeeded(b'"done"'))

    ((_, told),) = engine.command("XRANGE", engine.keys.answers, "-", "+")
    assert told[1::2] == [b"x", str(life).encode(), b"succeeded", b'"done"']


def test_who_asks_after_the_end_is_told_at_once(engine: Engine) -> None:
    finish(engine, "x", outcome=Failed(ERROR))
    life = engine.job("x").head.life

    expected = engine.send(views.expect(engine.keys, [("x", life), ("x", 999), ("gone", 0)], ms=60_000))

    told = [end and (end.status, end.text) for _, end in expected.lives]
    assert told == [("failed", ERROR), ("removed", b""), ("removed", b"")]


def test_retention_is_changed_by_a_setting_and_takes_effect_on_what_is_there(engine: Engine) -> None:
    finish(engine, "x")
    engine.send(lifecycle.configure(engine.keys, {"keep_succeeded": 1000}))

    engine.now += 1000
    engine.upkeep()

    assert engine.counts().total == 0
