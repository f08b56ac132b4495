"""The stream of events: numbered without a gap, whatever is left out of it, and bounded."""

from __future__ import annotations

import pytest

from skep import lifecycle
from skep.core.outcome import Retried, Succeeded
from skep.core.record import unpack
from tests.support.engine import Engine

ERROR = b'{"type":"Oops"}'


def entries(engine: Engine) -> list[tuple[int, dict[bytes, bytes]]]:
    """Number of the last event, and the fields before the jobs."""
    found = engine.command("XRANGE", engine.keys.events, "-", "+")
    return [(int(id.split(b"-")[0]), dict(zip(fields[:8:2], fields[1:8:2], strict=True))) for id, fields in found]


def live(engine: Engine, id: str) -> None:
    """A life of five events: added, started, retrying, started, succeeded."""
    engine.add(id)
    engine.settle(engine.claim()[0], Retried(0, ERROR))
    engine.settle(engine.claim()[0], Succeeded(b"1"))


def test_events_are_numbered_from_one_without_a_gap_also_through_a_drop(engine: Engine) -> None:
    engine.join()
    live(engine, "a")
    engine.send(lifecycle.drop(engine.keys))
    live(engine, "b")
    engine.add_plain(*(f"j{n}" for n in range(50)))

    events = engine.events()

    assert [event.seq for event in events] == list(range(1, 63))
    assert engine.get("queue", "epoch") == b"1"


def test_one_call_leaves_one_entry_however_many_events_it_makes(engine: Engine) -> None:
    engine.add_plain(*(f"j{n}" for n in range(50)))

    assert [number for number, _ in entries(engine)] == [50]


def test_with_endings_only_the_numbers_of_what_is_left_out_are_accounted_for(engine: Engine) -> None:
    engine.join()
    engine.send(lifecycle.configure(engine.keys, {"history": "endings"}))
    live(engine, "a")
    live(engine, "b")

    told = [event for event in engine.events() if event.seq > 2]
    marked = [(last, fields) for last, fields in entries(engine) if b"from" in fields]

    assert [event.type for event in told] == ["retrying", "succeeded"] * 2
    covered = 1  # the change of the setting is left out itself
    for last, fields in marked:
        assert int(fields[b"from"]) == covered + 1, "an entry says from which number on it stands"
        assert unpack(fields[b"numbers"])[-1] <= last
        covered = last
    assert covered == told[-1].seq == 12


def test_without_history_numbers_go_on_and_the_stream_holds_nothing_new(engine: Engine) -> None:
    engine.join()
    engine.send(lifecycle.configure(engine.keys, {"history": "none"}))
    before = engine.size("events")
    live(engine, "a")
    none = engine.size("events") - before, engine.get("queue", "seq")
    engine.send(lifecycle.configure(engine.keys, {"history": "all"}))
    live(engine, "b")

    told = [event for event in engine.events() if event.seq > 7]

    assert none == (0, b"7")
    assert [event.seq for event in told][-5:] == [9, 10, 11, 12, 13]
    number, fields = next((number, fields) for number, fields in entries(engine) if number > 7)
    assert int(fields.get(b"from", number)) <= 8


def test_lives_keep_numbers_of_their_own_where_nothing_is_told_of_them(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"history": "none"}))
    engine.join()

    lives = []
    for _ in range(3):
        lives.append(engine.add("x").life)
        engine.settle(engine.claim()[0], Succeeded(b"1"))

    assert len(set(lives)) == 3


def test_the_stream_keeps_at_least_so_many_events_and_not_many_more(engine: Engine) -> None:
    engine.send(lifecycle.configure(engine.keys, {"max_events": 300}))
    for n in range(2000):
        engine.add_plain(f"j{n}")

    events = engine.events()

    assert events[-1].seq == 2001
    assert events[0].seq <= 2001 - 299
    assert len(events) <= 300 + 200


@pytest.mark.parametrize(
    ("settings", "carried"),
    [({}, True), ({"event_data": "0"}, False), ({"max_event_data": 5}, False), ({"max_event_data": 50}, True)],
)
def test_data_and_results_go_with_events_unless_they_are_large_or_kept_out(
    engine: Engine, settings: dict[str, str | int], carried: bool
) -> None:
    engine.send(lifecycle.configure(engine.keys, settings))
    engine.join()
    engine.add("x", "123456789")
    engine.add_plain("y", data="123456789")
    for run in engine.claim(slots=2):
        engine.settle(run, Succeeded(b'"123456789"'))

    told = [event for event in engine.events() if event.type in ("added", "succeeded")]

    assert len(told) == 4
    for event in told:
        assert ("left_out" in event.details) is not carried
        assert (event.details.get("data") or event.details.get("result")) == ('"123456789"' if carried else None)


def test_a_job_may_be_called_as_the_fields_of_an_entry_are(engine: Engine) -> None:
    for id in ("from", "numbers", "at", "by"):
        engine.add_plain(id)
        engine.add(f"{id} too")

    assert [event.job for event in engine.events()] == [
        each for id in ("from", "numbers", "at", "by") for each in (id, f"{id} too")
    ]


def test_a_configured_failure_handler_is_told_so_that_anybody_can_read_it(engine: Engine) -> None:
    from skep.core.record import pack

    engine.send(lifecycle.configure(engine.keys, {"on_failure": pack({"t": True}), "retries": "3"}))

    (event,) = engine.events()
    assert event.details["settings"] == {"on_failure": {"t": True}, "retries": "3"}


def test_who_did_it_is_told_with_every_event(engine: Engine) -> None:
    engine.join("worker-1")
    engine.add("x")
    engine.claim("worker-1")

    assert [event.by for event in engine.events()] == ["worker-1", "host:1", "worker-1"]
