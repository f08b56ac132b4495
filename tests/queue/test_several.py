from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

import skep
from skep import JobFailed, Queue, lifecycle
from skep.core.outcome import Succeeded
from skep.errors import BlockingCall
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def test_jobs_come_as_they_end_each_once(plain: Queue, hand: Hands) -> None:
    worker = hand()
    jobs = [plain.add(n) for n in range(10)]
    runs = {run.id: run for run in worker.take(10)}
    ended: list[int] = []

    worker.end(runs[jobs[7].id], Succeeded(b"7"))
    for job in skep.as_completed(jobs, timeout=20):
        ended.append(job.result())
        if len(ended) < 10:
            following = (ended[-1] + 3) % 10
            worker.end(runs[jobs[following].id], Succeeded(str(following).encode()))

    assert ended == [7, 0, 3, 6, 9, 2, 5, 8, 1, 4]


def test_a_job_that_is_not_kept_can_still_tell_its_result(plain: Queue, hand: Hands) -> None:
    worker = hand()
    jobs = [plain.add(n, keep=False) for n in range(5)]
    ending = threading.Timer(0.1, lambda: [worker.succeed(n) for n in range(5)])
    ending.start()

    results = {job.id: job.result(timeout=0) for job in skep.as_completed(jobs, timeout=20)}

    ending.join()
    assert results == {job.id: n for n, job in enumerate(jobs)}
    assert plain.counts().total == 0


def test_jobs_of_several_queues_are_waited_for_together(plain: Queue, hand: Hands) -> None:
    with Queue("other") as other:
        jobs = [plain.add(1), other.add(2), plain.add(3)]
        hand().succeed("mail 1")
        hand(name="other").fail()

        done, waiting = skep.wait(jobs, timeout=0.2)

    assert (done, waiting) == (jobs[:2], jobs[2:])
    assert done[0].result() == "mail 1"
    with pytest.raises(JobFailed):
        done[1].result()


def test_waiting_for_all_returns_when_all_have_ended(plain: Queue, hand: Hands) -> None:
    worker = hand()
    jobs = [plain.add(n) for n in range(600)]
    runs = worker.take(600)
    ending = threading.Timer(
        0.1, worker.store.send, [lifecycle.leave_run(plain.keys, "hand", [(run, Succeeded(b"1")) for run in runs])]
    )
    ending.start()

    done, waiting = skep.wait(jobs, timeout=30)

    ending.join()
    assert (done, waiting) == (jobs, [])
    assert [job.result() for job in done] == [1] * 600


def test_the_time_may_be_over_before_all_have_ended(plain: Queue, hand: Hands) -> None:
    jobs = [plain.add(n) for n in range(3)]
    hand().succeed(0)

    ended = skep.as_completed(jobs, timeout=0.1)

    assert next(ended) == jobs[0]
    with pytest.raises(TimeoutError, match="2 of 3 jobs"):
        next(ended)


def test_one_job_named_twice_comes_twice_and_none_not_at_all(plain: Queue, hand: Hands) -> None:
    job = plain.add(1)
    hand().succeed("once")

    assert [each.result() for each in skep.as_completed([job, job])] == ["once", "once"]
    assert list(skep.as_completed([])) == []
    assert skep.wait([]) == ([], [])


def test_on_a_running_loop_the_way_of_asyncio_is_named(plain: Queue) -> None:
    job = plain.add(1)

    async def block() -> None:
        with pytest.raises(BlockingCall, match=r"asyncio\.as_completed"):
            next(skep.as_completed([job]))

    asyncio.run(block())
