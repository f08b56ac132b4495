from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice

import pytest

from skep import Event, EventsTrimmed, HistoryForked, HistoryOff, InvalidOption, Queue
from skep.core.events import TYPES
from skep.core.outcome import Failed, Retried, Returned, Succeeded
from skep.testing import Server
from tests.support.faces import Faces
from tests.support.hand import Hand

Hands = Callable[..., Hand]
ERROR = b'{"type":"ValueError","message":"no"}'


def some(queue: Queue, count: int, since: int | Event = 0) -> list[Event]:
    """So many events behind one."""
    return list(islice(queue.events(since=since), count))


def note_result(told: list[str], event: Event) -> None:
    told.append(event.details["result"])


def types(events: Iterator[Event] | list[Event]) -> list[str]:
    return [event.type for event in events]


def test_an_event_tells_all_of_what_happened(queue: Queue, hand: Hands) -> None:
    began = datetime.now(UTC)
    worker = hand("work")
    job = queue.add({"a": [1]}, task="work", name="label", id="k", meta={"m": 1}, delay=0)
    [run] = worker.take()
    worker.end(run, Succeeded(b'["done"]'))

    joined, added, started, succeeded = some(queue, 4)

    assert (joined.type, joined.job, joined.life, joined.status, joined.worker) == ("joined", None, None, None, "hand")
    assert (added.seq, added.type, added.queue, added.job, added.life) == (2, "added", "mail", "k", job.life)
    assert (added.task, added.name, added.status, added.worker, added.run) == ("work", "label", "waiting", None, None)
    assert (added.details["data"], added.details["meta"]) == ({"a": [1]}, {"m": 1})
    assert began.timestamp() - 0.01 <= added.at.timestamp() <= datetime.now(UTC).timestamp()
    assert added.due == added.at == added.details["created"]
    assert (started.status, started.run, started.worker, started.by) == ("active", 1, "hand", "hand")
    assert (succeeded.status, succeeded.run, succeeded.details["result"]) == ("succeeded", 1, ["done"])
    assert (succeeded.details["attempts"], succeeded.details["failures"]) == (1, 0)
    assert succeeded.details["started"] == started.at


def test_a_retry_tells_its_error_and_when_it_comes(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1)
    [run] = worker.take()
    worker.end(run, Retried(60_000, ERROR))

    event = some(queue, 4)[-1]

    assert (event.type, event.status, event.details["error"].type) == ("retrying", "retrying", "ValueError")
    assert event.due is not None
    assert (event.due - event.at).total_seconds() == 60
    assert (event.details["attempts"], event.details["failures"]) == (1, 1)


def test_events_that_come_later_are_waited_for(queue: Queue) -> None:
    queue.add(1, id="before")
    events = queue.events(since=1)

    adding = threading.Timer(0.1, lambda: Queue("mail").add(2, id="after"))
    adding.start()

    assert next(events).job == "after"
    adding.join()


def test_from_now_on_nothing_is_told_of_before(plain: Queue) -> None:
    plain.add(1, id="before")
    events = plain.events()

    plain.add(2, id="after")

    assert next(events).job == "after"


def test_reading_goes_on_behind_the_event_that_was_read_last(queue: Queue) -> None:
    queue.add_many(range(100))
    first = some(queue, 30)

    by_number, by_event = some(queue, 70, first[-1].seq), some(queue, 70, first[-1])

    assert by_number == by_event
    assert [event.seq for event in first + by_event] == list(range(1, 101))


def test_more_than_one_trip_of_events_comes_whole_and_in_order(queue: Queue) -> None:
    queue.add_many({"n": n, "text": "x" * 1000} for n in range(2000))

    events = some(queue, 2000)

    assert [event.seq for event in events] == list(range(1, 2001))
    assert [event.details["data"]["n"] for event in events] == list(range(2000))


def test_left_out_events_are_no_gap_and_keep_their_numbers(queue: Queue, hand: Hands) -> None:
    queue.configure(history="endings")
    worker = hand()
    for n in range(5):
        queue.add(n)
        worker.succeed(n)

    events = some(queue, 5)

    assert types(events) == ["succeeded"] * 5
    assert [event.seq for event in events] == [5, 8, 11, 14, 17]
    assert types(some(queue, 2, since=12)) == ["succeeded"] * 2


def test_a_queue_without_history_says_so(queue: Queue) -> None:
    queue.configure(history="none")

    for since in (None, 0, 1):
        with pytest.raises(HistoryOff, match="mail"):
            next(iter(queue.events(since=since)))


def test_a_history_that_is_switched_off_ends_the_reading(plain: Queue) -> None:
    events = plain.events()
    plain.add(1)
    next(events)

    plain.configure(history="none")

    with pytest.raises(HistoryOff):
        next(events)


def test_trimmed_events_are_told_and_not_passed_over(queue: Queue) -> None:
    queue.configure(max_events=100)
    for n in range(10):
        queue.add_many(range(100 * n, 100 * n + 100))
    queue.add("last")

    with pytest.raises(EventsTrimmed) as caught:
        some(queue, 1, since=5)
    oldest = some(queue, 1)[0].seq

    assert (caught.value.queue, caught.value.first, caught.value.last) == ("mail", 6, oldest - 1)


def test_an_event_behind_the_last_one_is_no_place_to_go_on_from(queue: Queue) -> None:
    queue.add(1)

    with pytest.raises(HistoryForked, match="5"):
        some(queue, 1, since=5)


def test_a_replaced_event_is_told_from_the_one_that_was_read(queue: Queue, hand: Hands) -> None:
    queue.add_many(range(3))
    last = some(queue, 3)[-1]
    worker = hand()  # whose connection is used to forget

    worker.store._command("DEL", queue.keys.events)
    worker.store._command("HSET", queue.keys.all[0], "seq", "0")
    deadline = time.time() + 10
    while time.time() * 1000 < last.at.timestamp() * 1000 + 2:
        assert time.time() < deadline
    queue.add_many(range(5))

    with pytest.raises(HistoryForked, match="another one"):
        some(queue, 1, since=last)
    assert len(some(queue, 2, since=last.seq)) == 2, "by its number alone nobody can tell"


@pytest.mark.parametrize("since", [-1, -100])
def test_a_place_that_cannot_be_is_refused(queue: Queue, since: int) -> None:
    with pytest.raises(InvalidOption, match="since"):
        next(iter(queue.events(since=since)))


def test_a_job_tells_its_life_and_ends_with_it(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add_many(range(10))
    job = queue.add(1, id="k")
    other = queue.add(2)
    runs = worker.take(20)
    job.log("half way")
    for run in runs:
        if run.id != other.id:
            worker.end(run, Succeeded(b"1"))

    told = list(job.events())

    assert types(told) == ["added", "started", "log", "succeeded"]
    assert {(event.job, event.life) for event in told} == {("k", job.life)}


def test_a_job_with_a_generated_id_is_found_by_its_time(queue: Queue, hand: Hands) -> None:
    worker = hand()
    jobs = []
    for n in range(20):
        queue.add_many(range(5))
        jobs.append(queue.add(n))
    for run in worker.take(200):
        worker.end(run, Succeeded(b"1"))

    told = [types(job.events()) for job in jobs]

    assert told == [["added", "started", "succeeded"]] * 20


def test_the_lives_of_an_id_are_told_apart(queue: Queue, hand: Hands) -> None:
    worker = hand()
    first = queue.add(1)
    worker.fail()
    again = queue.get(first.id)
    assert again is not None
    again.retry()
    worker.succeed()

    assert types(first.events()) == ["added", "started", "failed"]
    assert types(again.events()) == ["revived", "started", "succeeded"]


def test_a_jobs_events_go_on_until_it_ends(plain: Queue, hand: Hands) -> None:
    worker = hand()
    job = plain.add(1)
    told: list[str] = []
    follow = threading.Thread(target=lambda: told.extend(types(job.events())))
    follow.start()

    worker.retry(0)
    worker.succeed()
    follow.join(10)

    assert told == ["added", "started", "retrying", "started", "succeeded"]


@pytest.mark.parametrize("history", ["all", "endings"])
def test_a_removed_or_dropped_job_ends_its_events(plain: Queue, history: str) -> None:
    plain.configure(history=history)  # type: ignore[arg-type]
    removed, dropped = plain.add(1, id="a"), plain.add(2, id="b")

    removed.remove()
    plain.drop()

    whole = history == "all"
    assert types(removed.events()) == (["added", "removed"] if whole else [])
    assert types(dropped.events()) == (["added"] if whole else [])


def test_a_merged_jobs_events_go_on_in_the_life_it_was_merged_into(queue: Queue, hand: Hands) -> None:
    worker = hand()
    first = queue.add(1, id="k")
    [run] = worker.take()
    second = queue.add(2, id="k")
    worker.end(run, Returned())
    worker.succeed()

    told = list(second.events())

    assert types(told) == ["blocked", "merged", "started", "succeeded"]
    assert told[-1].life == first.life != second.life


def test_whoever_noted_a_type_of_events_is_told_of_those(queue: Queue, hand: Hands) -> None:
    told: list[str] = []

    @queue.on("failed")
    def failed(event: Event) -> None:
        told.append(f"failed {event.job} {event.details['error'].message}")

    queue.on("succeeded", lambda event: told.append(f"good {event.job}"))
    worker = hand()

    with queue.listening():
        for id in ("a", "b", "c"):
            queue.add(1, id=id)
        worker.succeed()
        worker.fail("broken")
        worker.succeed()

    assert told == ["good a", "failed b broken", "good c"]


def test_a_job_tells_of_its_own_life_only(queue: Queue, hand: Hands) -> None:
    told: list[str | None] = []
    worker = hand()
    job, other = queue.add(1), queue.add(2)

    job.on("started", lambda event: told.append(event.job))
    with queue.listening():
        for run in worker.take(2):
            worker.end(run, Failed(ERROR))
        queue.retry([job.id, other.id])
        worker.take(2)

    assert told == [job.id]


def test_a_type_of_events_that_there_is_not_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match="succeeded") as caught:
        queue.on("finished", print)

    assert all(name in str(caught.value) for name in TYPES.values())


def test_a_reader_with_a_name_goes_on_where_it_stopped(faces: Faces, hand: Hands) -> None:
    worker = hand()
    heard: list[list[str]] = []
    for _ in range(3):
        queue, told = faces.make("mail"), list[str]()
        queue.on("succeeded", partial(note_result, told))
        with queue.listening(reader="mine"):
            queue.add(1)
            worker.succeed(f"heard {len(heard)}")
        heard.append(told)
        queue.add(1)
        worker.succeed(f"missed {len(heard) - 1}")

    assert heard == [["heard 0"], ["missed 0", "heard 1"], ["missed 1", "heard 2"]]


def test_what_a_function_raises_ends_the_listening_and_is_told_again(faces: Faces, hand: Hands) -> None:
    worker = hand()
    queue, told = faces.make("mail"), list[int]()

    @queue.on("succeeded")
    def picky(event: Event) -> None:
        told.append(event.details["result"])
        if told == [1, 2]:
            raise LookupError("not this one")

    def three() -> None:
        with queue.listening(reader="mine"):
            for n in range(1, 4):
                queue.add(n)
                worker.succeed(n)

    with pytest.raises(LookupError):
        three()
    with queue.listening(reader="mine"):
        pass

    assert told == [1, 2, 2, 3]


def test_a_registered_reader_holds_back_trimming(plain: Queue) -> None:
    plain.configure(max_events=10)
    told: list[int] = []
    with plain.listening(reader="mine"):
        pass

    for n in range(50):
        plain.add_many(range(10 * n, 10 * n + 10))
    plain.on("added", lambda event: told.append(event.seq))
    with plain.listening(reader="mine"):
        pass

    assert told == list(range(3, 503))


def test_listening_in_the_foreground_ends_when_the_queue_is_closed(plain: Queue) -> None:
    told: list[int] = []
    plain.on("added", lambda event: told.append(event.seq))
    listener = threading.Thread(target=lambda: _until_closed(plain))
    listener.start()

    deadline = time.monotonic() + 10
    while not told:
        Queue("mail").add(1)
        assert time.monotonic() < deadline
    plain.close()
    listener.join(10)

    assert not listener.is_alive()


def _until_closed(queue: Queue) -> None:
    from skep import QueueClosed

    with pytest.raises(QueueClosed):
        queue.listen()


def test_a_lost_connection_does_not_end_the_listening(plain: Queue, hand: Hands) -> None:
    told: list[str | None] = []
    plain.on("added", lambda event: told.append(event.job))
    worker = hand()

    with plain.listening():
        for n in range(5):
            plain.add(1, id=str(n))
            worker.store._command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    assert told == ["0", "1", "2", "3", "4"]


def test_a_server_that_forgot_ends_the_listening(skep_server: Server, skep_url: str) -> None:
    with Queue("mail") as queue:
        queue.add(1)

        def listen() -> None:
            with queue.listening():
                skep_server.kill()
                skep_server.start()

        with pytest.raises(HistoryForked):
            listen()


def test_coroutines_are_awaited_by_the_asynchronous_queue_and_refused_by_the_other(faces: Faces) -> None:
    queue, told = faces.make("mail"), list[str | None]()

    @queue.on("added")
    async def slow(event: Event) -> None:
        told.append(event.job)

    def listen() -> None:
        with queue.listening():
            queue.add(1, id="k")

    if faces.kind == "sync":
        with pytest.raises(InvalidOption, match="aio"):
            listen()
    else:
        listen()
        assert told == ["k"]


def test_settings_of_the_queue_are_events_without_a_job(queue: Queue) -> None:
    queue.configure(max_waiting=5)
    queue.pause()

    configured, paused = some(queue, 2)

    assert (configured.type, configured.job, configured.details) == (
        "configured",
        None,
        {"settings": {"max_waiting": "5"}},
    )
    assert (paused.type, paused.status, paused.due) == ("paused", None, None)
