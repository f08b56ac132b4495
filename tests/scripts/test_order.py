"""In which order jobs are taken: priorities, first in first out, and the time at which they fall due."""

from __future__ import annotations

import random

import pytest

from skep import lifecycle
from skep.core.outcome import Retried, Returned
from tests.support.engine import Engine

ERROR = b'{"type":"Oops"}'


def taken(engine: Engine, slots: int = 1000) -> list[str]:
    """The ids of the next claim."""
    return [run.id for run in engine.claim(slots=slots)]


def test_lower_priorities_are_taken_first_and_in_the_order_of_their_adds(engine: Engine) -> None:
    engine.join()
    dice = random.Random(1)
    added = [(dice.choice([10, 20, 30, 40, 50, 60]), f"j{n:03d}") for n in range(120)]
    for priority, id in added:
        engine.add(id, options={"priority": priority})

    order = [id for _ in range(24) for id in taken(engine, 5)]

    assert order == [id for _, id in sorted(added, key=lambda each: each[0])]


def test_a_thousand_cancelled_jobs_at_the_head_do_not_hide_the_one_behind(engine: Engine) -> None:
    engine.join()
    ids = [f"c{n}" for n in range(1000)]
    engine.add_plain(*ids[:500])
    engine.add_plain(*ids[500:])
    engine.add_plain("last")
    engine.send(lifecycle.cancel(engine.keys, [(id, None) for id in ids[:500]]))
    engine.send(lifecycle.remove(engine.keys, [(id, None) for id in ids[500:]]))

    found: list[str] = []
    claims = 0
    while not found:
        found, claims = taken(engine, 1), claims + 1
        assert found or engine.size("wake"), "a worker that found nothing would sleep beside a waiting job"

    assert found == ["last"]
    assert claims <= 60
    assert engine.counts().waiting == 0


def test_a_job_that_is_added_again_after_its_removal_is_taken_in_its_new_place(engine: Engine) -> None:
    engine.join()
    for id in "abc":
        engine.add(id)
    engine.send(lifecycle.remove(engine.keys, [("a", None)]))
    engine.add("a")

    order = taken(engine)

    assert order == ["b", "c", "a"]


def test_a_change_of_priority_moves_a_job_and_any_other_change_does_not(engine: Engine) -> None:
    engine.join()
    for id in "abcd":
        engine.add(id)
    engine.send(lifecycle.update(engine.keys, [("c", None)], options={"priority": 10}))
    engine.send(lifecycle.update(engine.keys, [("a", None)], data=b"2"))
    engine.send(lifecycle.update(engine.keys, [("b", None)], options={"priority": 60}))
    engine.add("b", options={"priority": 40})

    order = taken(engine)

    assert order == ["c", "a", "d", "b"]


def test_due_jobs_are_taken_in_the_order_of_their_times(engine: Engine) -> None:
    engine.join()
    for place in random.Random(2).sample(range(50), 50):
        engine.add(f"j{place:02d}", delay=100 + place)
    engine.now += 1000

    order = taken(engine)

    assert order == [f"j{place:02d}" for place in range(50)]


def test_a_job_is_not_taken_a_millisecond_before_its_time(engine: Engine) -> None:
    engine.join()
    engine.add("x", delay=1000)
    engine.now += 999

    early = taken(engine)
    engine.now += 1
    then = taken(engine)

    assert (early, then) == ([], ["x"])


def test_a_retried_job_goes_to_the_back_and_a_returned_one_to_the_front(engine: Engine) -> None:
    engine.join()
    for id in "abc":
        engine.add(id)
    first, second = engine.claim(slots=2)
    engine.settle(first, Retried(0, ERROR))
    engine.settle(second, Returned())

    order = taken(engine)

    assert order == ["b", "c", "a"]


def test_a_returned_job_is_taken_first_although_an_old_entry_of_it_is_skipped(engine: Engine) -> None:
    engine.join()
    for id in "ab":
        engine.add(id)
    engine.add("x")
    engine.send(lifecycle.promote(engine.keys, []))
    engine.send(lifecycle.remove(engine.keys, [("x", None)]))
    engine.add("x", options={"priority": 10})
    (run,) = engine.claim()
    engine.send(lifecycle.update(engine.keys, [("x", None)], options={"priority": 40}))
    engine.settle(run, Returned())

    order = taken(engine)

    assert run.id == "x"
    assert order == ["x", "a", "b"]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    paused = engine.twice(lifecycle.pause(engine.keys, wanted=True))
    again = engine.twice(lifecycle.pause(engine.keys, wanted=True))

    while_paused = taken(engine)
    resumed = engine.twice(lifecycle.pause(engine.keys, wanted=False))
    after = taken(engine)

    assert (paused, again, resumed) == (True, False, True)
    assert (while_paused, after) == ([], ["x"])


@pytest.mark.timeout(120)
def test_a_hundred_thousand_jobs_due_in_the_same_millisecond_are_all_taken_once(plain_engine: Engine) -> None:
    engine = plain_engine
    engine.join()
    ids = [f"j{n:06d}" for n in range(100_000)]
    for first in range(0, len(ids), 500):
        engine.add_plain(*ids[first : first + 500], delay=5000)
    engine.now += 5000

    found: list[str] = []
    for _ in range(400):
        found += taken(engine, 500)
        if len(found) == len(ids):
            break

    assert sorted(found) == ids
    assert engine.counts().active == len(ids)
