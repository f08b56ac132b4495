from __future__ import annotations

import os
import time
from collections.abc import Callable

from skep import JobSpec, Queue, Worker
from tests.support.faces import Faces
from tests.support.hand import LEASE, Hand
from tests.support.served import until

Hands = Callable[..., Hand]


def test_workers_tell_who_they_are_and_how_long_they_have(queue: Queue, hand: Hands) -> None:
    assert queue.workers() == []
    hand()

    [worker] = queue.workers()

    assert worker.name == "hand"
    assert LEASE / 1000 - 30 < worker.lease_left <= LEASE / 1000
    assert (worker.host, worker.pid) == (None, None)


def test_a_real_worker_tells_its_process(plain: Queue) -> None:
    with Worker(plain):
        [worker] = plain.workers()
        assert worker.pid == os.getpid()

    assert plain.workers() == []


def test_schedules_in_code_are_listed_as_they_stand(plain: Queue, faces: Faces) -> None:
    @plain.task(cron="0 9 * * *", tz="Europe/Paris")
    def daily() -> None: ...

    @plain.task(every=600)
    def often() -> None: ...

    plain.add_many(range(100))
    plain.add(1, id="mine", cron="0 9 * * *")
    with Worker(plain, concurrency=1):
        until(lambda: len(plain.schedules()) == 2)

    listed = faces.make("mail").schedules()

    assert [job.id for job in listed] == ["cron:daily", "cron:often"]
    assert (listed[0].options.cron, listed[0].options.tz, listed[1].options.every) == (
        "0 9 * * *",
        "Europe/Paris",
        600,
    )


def test_stats_tell_how_much_there_is_to_do_and_how_old_it_is(queue: Queue, hand: Hands) -> None:
    assert (queue.stats().waiting, queue.stats().oldest_age) == (0, None)
    worker = hand()
    past = time.time() - 100
    queue.add_many([1, 2, JobSpec(3, run_at=past, priority="low"), JobSpec(4, run_at=past - 50, id="gone")])
    queue.remove("gone")
    worker.take(1)

    stats = queue.stats()

    assert (stats.waiting, stats.running, stats.workers) == (2, 1, 1)
    assert stats.oldest_age is not None
    assert 99 < stats.oldest_age < 160
