from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from skep import lifecycle
from skep.testing import Server
from skep.worker.worker import Worker
from tests.support.served import Served, until


@pytest.fixture
def two(skep_url: str) -> Iterator[tuple[Served, Served]]:
    """Two queues, and tasks `go` that note where they ran."""
    pair = Served("first", skep_url), Served("second", skep_url)
    yield pair
    for each in pair:
        each.store.close()


def all_ran(done: Counter[int], round_number: int, wanted: int) -> bool:
    return done[round_number] == wanted


def note_runs(order: list[str], *queues: Served) -> None:
    for queue in queues:

        @queue.task()
        async def go(name: str = queue.name) -> None:
            order.append(name)


def test_delayed_jobs_start_at_their_times_in_their_order(queue: Served) -> None:
    began: dict[str, float] = {}

    @queue.task()
    async def go(name: str) -> None:
        began[name] = time.time()

    with Worker(queue, concurrency=1):
        start = time.time()
        for name, delay in {"far": 60.0, "c": 0.6, "b": 0.4, "a": 0.2}.items():
            queue.add("go", {"name": name}, delay=delay)
        until(lambda: len(began) == 3)

    late = [began[name] - start - delay for name, delay in {"a": 0.2, "b": 0.4, "c": 0.6}.items()]
    assert sorted(began) == sorted(began, key=began.__getitem__) == ["a", "b", "c"]
    assert all(-0.01 < each < 0.2 for each in late), late


def test_jobs_of_one_priority_run_in_the_order_of_their_adding(queue: Served) -> None:
    order: list[int] = []

    @queue.task()
    async def go(i: int) -> None:
        order.append(i)

    queue.add_many([{"i": i} for i in range(50)], "go")
    with Worker(queue, concurrency=3):
        until(lambda: len(order) == 50)

    assert order == list(range(50))


def test_the_more_important_queue_of_a_worker_is_emptied_first(two: tuple[Served, Served]) -> None:
    order: list[str] = []
    low, high = two
    high.priority = 20
    note_runs(order, low, high)
    for each in two:
        each.add_many([None] * 20, "go")

    with Worker(low, high, concurrency=1):
        until(lambda: len(order) == 40)

    assert order == ["second"] * 20 + ["first"] * 20


@pytest.mark.parametrize("slots", [1, 4])
def test_queues_of_equal_priority_take_turns(two: tuple[Served, Served], slots: int) -> None:
    order: list[str] = []
    note_runs(order, *two)
    for each in two:
        each.add_many([None] * 40, "go")

    with Worker(*two, concurrency=slots):
        until(lambda: len(order) == 80)

    assert 10 <= order[:40].count("first") <= 30, order


def test_a_busy_queue_does_not_keep_a_worker_from_an_idle_one(two: tuple[Served, Served]) -> None:
    order: list[str] = []
    note_runs(order, *two)
    busy, idle = two

    with Worker(*two, concurrency=2):
        busy.add_many([None] * 400, "go")
        until(lambda: "first" in order)
        id = idle.add("go")
        idle.ended(id)

        assert idle.status(id) == "succeeded"


def test_a_paused_worker_takes_nothing_and_leaves_the_work_to_others(queue: Served) -> None:
    @queue.task()
    async def go() -> str:
        return "ran"

    paused = Worker(queue)
    with paused:
        queue.ended(queue.add("go"))
        paused.pause()
        id, later = queue.add("go"), queue.add("go", delay=0.3)
        with Worker(queue):
            assert queue.result(id) == queue.result(later) == "ran"


def test_a_paused_worker_goes_on_when_it_is_resumed(queue: Served) -> None:
    @queue.task()
    async def go() -> str:
        return "ran"

    worker = Worker(queue)
    worker.pause()
    with worker:
        id = queue.add("go")
        held_back = queue.status(id)
        worker.resume()

        assert queue.result(id) == "ran"
    assert held_back == "waiting"


def test_a_paused_queue_is_served_again_when_it_is_resumed(queue: Served) -> None:
    @queue.task()
    async def go() -> str:
        return "ran"

    queue.send(lifecycle.pause(queue.keys, wanted=True))
    with Worker(queue):
        id = queue.add("go")
        queue.send(lifecycle.pause(queue.keys, wanted=False))

        assert queue.result(id) == "ran"


def test_several_workers_share_jobs_and_each_job_runs_once(queue: Served) -> None:
    ran: list[int] = []

    @queue.task()
    async def go(i: int) -> None:
        ran.append(i)
        await asyncio.sleep(0.001)

    queue.add_many([{"i": i} for i in range(300)], "go")
    with ExitStack() as workers:
        for _ in range(3):
            workers.enter_context(Worker(queue, concurrency=3))
        until(lambda: queue.counts().succeeded == 300)

    assert sorted(ran) == list(range(300))


def test_all_slots_are_filled_by_claims_for_a_part_of_them_each(queue: Served) -> None:
    running: set[int] = set()
    full: list[asyncio.Event] = []

    @queue.task()
    async def go(i: int) -> None:
        mine = asyncio.Event()
        full.append(mine)
        running.add(i)
        if len(running) >= 120:
            for event in full:
                event.set()
        await mine.wait()

    queue.add_many([{"i": i} for i in range(130)], "go")
    with Worker(queue, concurrency=120):
        until(lambda: queue.counts().succeeded == 130)

    assert running == set(range(130))


def test_a_full_worker_hands_the_wake_up_on_to_one_that_has_room(two: tuple[Served, Served]) -> None:
    first, second = two
    released = asyncio.Event()

    @first.task()
    async def blocks() -> None:
        await asyncio.sleep(2)

    @second.task()
    async def go() -> float:
        return time.time()

    both, other = Worker(first, second, concurrency=1), Worker(second, concurrency=1)
    with both, other:
        blocker = first.add("blocks")
        until(lambda: first.status(blocker) == "active")
        started = time.time()
        ids = [second.add("go", delay=delay) for delay in (0.05, 0.2, 0.4)]

        assert all(second.result(id) - started < 1.0 for id in ids)
    assert not released.is_set()


def test_no_wake_up_is_lost_over_rounds_that_end_in_silence(queue: Served) -> None:
    dice = random.Random(7)
    done: Counter[int] = Counter()

    @queue.task()
    async def go(round_number: int) -> None:
        done[round_number] += 1

    with ExitStack() as workers:
        for _ in range(4):
            workers.enter_context(Worker(queue, concurrency=1, lease=60))
        for round_number in range(60):
            data = {"round_number": round_number}
            wanted = dice.randrange(1, 5)
            for _ in range(wanted):
                queue.add("go", data, delay=dice.choice([0, 0, 0.002, 0.01]))

            # Nothing else is added until these have run, and renewals are 5 s apart: who is not woken stays asleep.
            until(partial(all_ran, done, round_number, wanted), seconds=4)


def test_a_full_worker_that_is_fenced_hands_the_wake_up_on(queue: Served) -> None:
    ran: list[float] = []
    ends = threading.Event()

    @queue.task()
    def go() -> None:
        ran.append(time.monotonic())
        if len(ran) == 1:
            ends.wait(30)

    # It was woken by its timer: so it still listens while it has no room, and the first marker is for it.
    with Worker(queue, concurrency=1):
        id = queue.add("go", delay=0.3)
        until(lambda: ran)
        lease = queue.look(id).lease
        assert lease is not None
        with Worker(queue, concurrency=1):
            queue.send(lifecycle.leave(queue.keys, lease.worker, died=True))

            until(lambda: len(ran) == 2, seconds=3)
        ends.set()


def test_an_idle_worker_sends_less_than_one_command_a_second() -> None:
    def sent(stats: dict[str, dict[str, int]]) -> int:
        return sum(
            stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "script|load", "blpop")
        )

    with Server() as server, server.client() as client:
        served = Served("idle", server.url)
        with Worker(served, lease=6):
            until(lambda: client.info("clients")["blocked_clients"] == 1)
            before, began = sent(client.info("commandstats")), time.monotonic()
            until(lambda: sent(client.info("commandstats")) >= before + 6)
            seconds = time.monotonic() - began
        served.store.close()

    # With a lease of 30 s, which is the usual one, it sends a fifth of that.
    assert 6 / seconds / 5 < 1
