"""Registered readers: what is kept for them, and the counts that they find in the stream."""

from __future__ import annotations

from skep import lifecycle
from tests.support.engine import Engine

DAY = 86_400_000


def counted(engine: Engine) -> list[dict[str, int]]:
    return [event.details["counts"] for event in engine.events() if event.type == "counted"]


def test_the_first_call_of_a_reader_puts_all_counts_into_the_stream(engine: Engine) -> None:
    engine.add("a")
    engine.add("b", delay=1000)
    engine.join()
    engine.claim()

    engine.send(lifecycle.reader(engine.keys, "lake", 0))
    engine.send(lifecycle.reader(engine.keys, "lake", 2))

    [counts] = counted(engine)
    assert {name: count for name, count in counts.items() if count} == {"scheduled": 1, "active": 1}


def test_counts_come_again_after_every_ten_thousand_events_while_there_is_a_reader(plain_engine: Engine) -> None:
    engine = plain_engine
    engine.send(lifecycle.reader(engine.keys, "lake", 0))
    for first in range(0, 10_500, 500):
        engine.add_plain(*(f"{n:05d}" for n in range(first, first + 500)))

    engine.upkeep()
    engine.upkeep()

    assert [counts["waiting"] for counts in counted(engine)] == [0, 10_500]


def test_a_reader_that_has_not_committed_for_a_week_holds_nothing_back_any_more(engine: Engine) -> None:
    engine.send(lifecycle.reader(engine.keys, "lake", 0))
    engine.upkeep()
    assert engine.get("queue", "hold") == b"0"

    engine.now += 7 * DAY + 60_001
    engine.upkeep()

    assert engine.get("queue", "hold") is None
