"""Events without Spark: slices, offsets, and the columns that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skep import Queue, lifecycle
from skep.core.codec import encode
from skep.core.events import RawEvent, read_entry
from skep.core.job import Lease, decode_error
from skep.core.keys import Keys
from skep.core.outcome import Retried, Returned
from skep.errors import EventsTrimmed, HistoryForked, HistoryOff
from skep.spark import decode, feed
from skep.spark.feed import Feed, Offsets, Slice
from skep.spark.schema import EVENT, ArrowSchema, arrow_schema
from skep.store.sync import Store
from skep.testing import Server
from skep.views import Mark
from tests.support.engine import Engine
from tests.support.hand import Hand

SCHEMA = arrow_schema(EVENT)
KEYS = Keys("mail")


@pytest.fixture
def feed_of_mail(store: Store) -> Feed:
    return Feed(store, ["mail"])


def rows(store: Store, parts: list[Slice], schema: ArrowSchema = SCHEMA) -> list[dict[str, Any]]:
    """What tasks make of slices."""
    return [
        row
        for part in parts
        for batch in decode.batches(feed.read(store, part), part, schema)
        for row in batch.to_pylist()
    ]


def numbers(store: Store, parts: list[Slice]) -> list[int]:
    return [row["seq"] for row in rows(store, parts)]


def everything(feed_of_mail: Feed) -> list[Slice]:
    return feed_of_mail.slices({}, feed_of_mail.ends({}))


def raw_events(store: Store, part: Slice) -> list[RawEvent]:
    return [event for some in feed.read(store, part) for entry in some for event in read_entry(*entry)]


def a_rich_history(mail: Queue, url: str) -> None:
    """Every kind of end, jobs with and without options, a queue that is paused."""
    mail.add_many([{"n": n} for n in range(7)], name="many", meta={"from": "a test"})
    mail.add({"n": 7}, id="from", delay=3600)
    mail.add({"n": 8}, id="from", delay=7200)
    hand = Hand("mail", url)
    hand.succeed({"fine": True})
    hand.succeed("x" * 20_000)
    hand.fail("broken")
    hand.retry(0)
    hand.cancel("enough")
    one, another = hand.take(2)
    hand.end(one, Returned())
    hand.end(another, Retried(0, encode({"type": "ValueError", "message": "m", "traceback": "t", "details": {}})))
    hand.succeed()
    mail.pause()
    mail.resume()
    mail.hold("from")
    mail.release("from")
    mail.remove("from")
    hand.close()


def as_read_one_by_one(event: RawEvent) -> dict[str, Any]:
    """A row made in the plainest way, as docs/events.md tells; times are milliseconds."""
    told, head, job = dict(event.details), event.head, event.job or None
    lease = Lease.read(told.pop("lease").encode()) if "lease" in told else None
    error = decode_error(told.pop("error").encode()) if "error" in told else None
    row = {
        "seq": event.seq,
        "at": event.at,
        "by": event.by,
        "type": event.type,
        "queue": "mail",
        "job": job,
        "task": head.task if job else None,
        "life": head.life if job else None,
        "run": event.run if job else None,
        "status": event.status if job else None,
        "created": head.created if job else None,
        "due": told.get("was", told.get("due", head.due)) if job else None,
        "next_run": told.get("due") if "was" in told else told.get("next"),
        "worker": lease.worker if lease else told.get("worker"),
        "started": lease.started if lease else None,
        "began": told.get("began", lease.started if lease else None),
        "attempts": told.get("attempts", int(event.type == "succeeded")) if job else None,
        "left_out": told.get("left_out", False),
        "error_type": error and error.type,
        "error_message": error and error.message,
        "error_kind": error and error.kind,
        "error_traceback": (error and error.traceback) or None,
    }
    row |= {name: told.get(name, 0) if job else None for name in ("failures", "stalls", "timeouts")}
    row |= {name: told.get(name) for name in ("reason", "data", "result")}
    row |= {name: head.options.get(name) for name in ("name", "meta", "write")}
    rest = {name: value for name, value in told.items() if name not in {*row, "was", "next"}}
    return row | {"details": encode(rest).decode() if rest else None}


def in_milliseconds(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value.timestamp() * 1000) if hasattr(value, "timestamp") else value for name, value in row.items()
    }


def test_events_in_columns_are_those_that_are_read_one_by_one(
    mail: Queue, skep_url: str, store: Store, feed_of_mail: Feed
) -> None:
    a_rich_history(mail, skep_url)
    [part] = everything(feed_of_mail)

    found = [in_milliseconds(row) for row in rows(store, [part])]

    assert found == [as_read_one_by_one(event) for event in raw_events(store, part)]
    assert {"added", "succeeded", "failed", "retrying", "cancelled", "returned", "paused"} <= {
        row["type"] for row in found
    }


def test_only_the_columns_that_are_asked_for_are_made(mail: Queue, store: Store, feed_of_mail: Feed) -> None:
    mail.add({"n": 1})
    asked = arrow_schema(EVENT.__class__([EVENT["type"], EVENT["data"]]))

    found = rows(store, everything(feed_of_mail), asked)

    assert found == [{"type": "added", "data": '{"n":1}'}]


def test_a_queue_without_events_has_nothing_to_read_and_no_offset(feed_of_mail: Feed) -> None:
    ends = feed_of_mail.ends({})

    assert ends == {}
    assert feed_of_mail.slices({}, ends) == []


def test_a_long_stream_is_read_in_slices_that_meet_without_gap_or_overlap(
    mail: Queue, store: Store, feed_of_mail: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "EVENTS_IN_A_SLICE", 40)
    mail.add_many(range(130))

    parts = everything(feed_of_mail)

    assert len(parts) == 3
    assert numbers(store, parts) == list(range(1, 131))


def test_a_limit_ends_a_batch_with_the_entry_that_it_falls_into(mail: Queue, feed_of_mail: Feed) -> None:
    mail.add_many(range(10))
    mail.add_many(range(10))

    ends = feed_of_mail.ends({}, room=3)
    then = feed_of_mail.ends(ends, room=3)

    assert ends["mail"]["seq"] == 10
    assert then["mail"]["seq"] == 20
    assert feed_of_mail.ends(then, room=3) == then


def test_batch_after_batch_every_event_is_read_once(mail: Queue, store: Store, feed_of_mail: Feed) -> None:
    for _ in range(8):
        mail.add_many(range(7))
    start: Offsets = {}
    found: list[int] = []

    while (end := feed_of_mail.ends(start, room=10)) != start:
        found += numbers(store, feed_of_mail.slices(start, end))
        start = end

    assert found == list(range(1, 57))


def test_a_limit_is_shared_by_queues_and_none_is_passed_over(mail: Queue, skep_url: str, store: Store) -> None:
    with Queue("busy") as busy, Queue("calm") as calm:
        for n in range(30):
            busy.add(n)
        calm.add(1)

        ends = Feed(store, ["busy", "calm"]).ends({}, room=10)

    assert {queue: end["seq"] for queue, end in ends.items()} == {"busy": 9, "calm": 1}


def test_what_comes_after_a_given_end_is_left_for_later(mail: Queue, feed_of_mail: Feed) -> None:
    mail.add(1)
    until = feed_of_mail.ends({})
    mail.add(2)

    ends = feed_of_mail.ends({}, until=until)

    assert ends == until


def test_a_slice_whose_first_events_are_gone_is_refused_with_their_numbers(
    mail: Queue, store: Store, skep_server: Server, feed_of_mail: Feed
) -> None:
    for n in range(9):
        mail.add(n)
    first = feed_of_mail.ends({}, room=2)
    parts = feed_of_mail.slices(first, feed_of_mail.ends(first))
    trim(skep_server, 6)

    with pytest.raises(EventsTrimmed, match="events 3 to 5 were trimmed"):
        numbers(store, parts)


def test_an_offset_whose_next_event_is_gone_is_refused(mail: Queue, skep_server: Server, feed_of_mail: Feed) -> None:
    for n in range(9):
        mail.add(n)
    start = feed_of_mail.ends({}, room=2)
    trim(skep_server, 6)

    with pytest.raises(EventsTrimmed, match="events 3 to 5 were trimmed"):
        feed_of_mail.ends(start)


def test_a_first_read_begins_at_the_oldest_event_that_is_kept(
    mail: Queue, store: Store, skep_server: Server, feed_of_mail: Feed
) -> None:
    for n in range(9):
        mail.add(n)
    trim(skep_server, 6)

    found = numbers(store, everything(feed_of_mail))

    assert found == [6, 7, 8, 9]


def trim(server: Server, oldest: int) -> None:
    engine = Engine(server.path, "mail")
    engine.command("XTRIM", KEYS.events, "MINID", oldest)
    engine.connection.disconnect()


def forget(server: Server, lost: Callable[[], None]) -> None:
    """A server that comes back without what happened in `lost`."""
    engine = Engine(server.path, "mail")
    before = engine.photo()
    lost()
    engine.restore(before)
    engine.connection.disconnect()


def test_a_stream_that_ends_before_what_was_read_has_forked(
    mail: Queue, skep_server: Server, feed_of_mail: Feed
) -> None:
    read: list[Offsets] = []
    mail.add(1)

    def lose() -> None:
        mail.add(2)
        read.append(feed_of_mail.ends({}))

    forget(skep_server, lose)

    with pytest.raises(HistoryForked, match="event 2 was there, and the last one is 1 now"):
        feed_of_mail.ends(read[0])


def test_a_stream_whose_last_read_event_was_replaced_has_forked(
    mail: Queue, store: Store, skep_server: Server, feed_of_mail: Feed
) -> None:
    read: list[Offsets] = []
    mail.add(1)

    def lose() -> None:
        mail.add(2)
        read.append(feed_of_mail.ends({}))

    forget(skep_server, lose)
    [last] = read[0].values()
    assert last["at"] is not None
    elsewhere = {"mail": {"seq": last["seq"], "at": last["at"] - 1}}
    mail.add_many([3, 4, 5])

    with pytest.raises(HistoryForked, match="event 2 is another one than it was"):
        feed_of_mail.ends(elsewhere)
    with pytest.raises(HistoryForked, match="event 2 is another one than it was"):
        numbers(store, [Slice("mail", Mark(2, last["at"] - 1), Mark(4, None))])


def test_a_replaced_event_at_the_end_of_a_slice_is_noticed_too(mail: Queue, store: Store) -> None:
    mail.add_many([1, 2, 3])

    with pytest.raises(HistoryForked, match="event 3 is another one than it was"):
        numbers(store, [Slice("mail", Mark(0, None), Mark(3, 5))])


def test_a_queue_that_keeps_no_events_is_refused_by_name(mail: Queue, store: Store, feed_of_mail: Feed) -> None:
    store.send(lifecycle.configure(KEYS, {"history": "none"}))

    with pytest.raises(HistoryOff, match="queue 'mail' keeps no events"):
        feed_of_mail.ends({})


def test_events_that_are_left_out_are_not_taken_for_lost(
    mail: Queue, skep_url: str, store: Store, feed_of_mail: Feed
) -> None:
    store.send(lifecycle.configure(KEYS, {"history": "endings"}))
    hand = Hand("mail", skep_url)
    mail.add_many(range(3))
    for n in range(3):
        hand.succeed(n)
    mail.add("not written")
    hand.close()

    found = rows(store, everything(feed_of_mail))

    assert [row["result"] for row in found if row["type"] == "succeeded"] == ["0", "1", "2"]
    assert "added" not in {row["type"] for row in found}


def test_a_registered_reader_holds_trimming_back_to_its_last_event(
    mail: Queue, store: Store, feed_of_mail: Feed
) -> None:
    store.send(lifecycle.configure(KEYS, {"max_events": "1"}))
    store.send(lifecycle.reader(KEYS, "lake", 0, begins=True))
    for n in range(300):
        mail.add(n)
    done = feed_of_mail.ends({}, room=150)
    store.send(lifecycle.reader(KEYS, "lake", done["mail"]["seq"]))
    for n in range(300):
        mail.add(n)

    found = numbers(store, feed_of_mail.slices(done, feed_of_mail.ends(done)))

    configured_counted_and_added = 2 + 600
    assert found == list(range((done["mail"]["seq"] or 0) + 1, configured_counted_and_added + 1))


def test_a_reader_that_begins_again_gives_nothing_up_that_it_held(store: Store, mail: Queue) -> None:
    mail.add(1)
    store.send(lifecycle.reader(KEYS, "lake", 5))

    held = store.send(lifecycle.reader(KEYS, "lake", 9, begins=True))
    earlier = store.send(lifecycle.reader(KEYS, "lake", 2, begins=True))

    assert (held, earlier) == (5, 2)
