from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from skep import AsyncQueue, JobCancelled, JobFailed, JobNotFound, Queue, QueueClosed, Retention, StaleJob
from skep.core.outcome import Retried, Returned, Succeeded
from tests.support.faces import Faces
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def soon(what: Callable[[], object]) -> threading.Timer:
    """Does it beside the test, once somebody waits."""
    timer = threading.Timer(0.1, what)
    timer.start()
    return timer


def test_a_result_is_there_at_once_when_the_job_has_ended(queue: Queue, hand: Hands) -> None:
    job = queue.add(1)
    hand().succeed({"a": [None]})

    assert job.result(timeout=5) == {"a": [None]}
    assert job.result() == {"a": [None]}


def test_who_waits_for_a_result_is_told_when_it_comes(queue: Queue, hand: Hands) -> None:
    worker = hand()
    job = queue.add(1)

    ended = soon(lambda: worker.succeed("done"))

    assert job.result(timeout=10) == "done"
    ended.join()


def test_a_result_that_is_kept_not_at_all_reaches_who_waits(queue: Queue, hand: Hands) -> None:
    queue.configure(retention=Retention(succeeded=0))
    worker = hand()
    job = queue.add(1)

    ended = soon(lambda: worker.succeed("heard"))

    assert job.result(timeout=10) == "heard"
    ended.join()
    assert queue.get(job.id) is None


def test_a_failed_job_raises_what_it_failed_with(queue: Queue, hand: Hands) -> None:
    job = queue.add(1)
    hand().fail("broken")

    with pytest.raises(JobFailed, match="ValueError: broken") as caught:
        job.result(timeout=5)

    assert (caught.value.id, caught.value.error.type, caught.value.error.message) == (job.id, "ValueError", "broken")


def test_a_cancelled_job_raises_its_reason(queue: Queue) -> None:
    job = queue.add(1)
    job.cancel(reason="no longer wanted")

    with pytest.raises(JobCancelled, match="no longer wanted"):
        job.result(timeout=5)


def test_a_job_that_is_gone_is_told_as_not_found(queue: Queue) -> None:
    job = queue.add(1)

    job.remove()

    with pytest.raises(JobNotFound, match=job.id):
        job.result(timeout=10)


def test_who_waits_for_a_job_hears_that_it_was_removed(plain: Queue) -> None:
    job = plain.add(1)

    gone = soon(job.remove)

    with pytest.raises(JobNotFound, match=job.id):
        job.result(timeout=10)
    gone.join()


def test_a_timeout_tells_where_the_job_stands(queue: Queue, hand: Hands, skep_url: str) -> None:
    job = queue.add(1, retries=5)
    hand().retry()

    with pytest.raises(TimeoutError) as caught:
        job.result(timeout=0.05)

    told = str(caught.value)
    assert all(word in told for word in (job.id, "retrying", "ValueError: again", skep_url, "1 worker of the queue"))


def test_a_timeout_tells_that_nobody_works_there(queue: Queue) -> None:
    job = queue.add(1)

    with pytest.raises(TimeoutError, match="is waiting; no workers of the queue there"):
        job.result(timeout=0.05)


def test_a_blocked_job_is_waited_for_until_its_own_end(queue: Queue, hand: Hands) -> None:
    worker = hand()
    first = queue.add(1, id="k")
    [run] = worker.take()
    second = queue.add(2, id="k")

    def both() -> None:
        worker.end(run, Succeeded(b'"first"'))
        worker.succeed("second")

    ended = soon(both)

    assert second.result(timeout=10) == "second"
    ended.join()
    with pytest.raises(StaleJob):
        first.result(timeout=5)


def test_a_merged_job_is_waited_for_in_the_life_it_was_merged_into(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1, id="k")
    [run] = worker.take()
    second = queue.add(2, id="k")

    def merge() -> None:
        worker.end(run, Retried(0, b'{"type":"X"}'))
        worker.succeed("together")

    ended = soon(merge)

    assert second.result(timeout=10) == "together"
    ended.join()


def test_a_handle_of_a_job_that_was_merged_long_ago_follows_it(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1, id="k")
    [run] = worker.take()
    second = queue.add(2, id="k")
    worker.end(run, Returned())

    assert second.refresh().status == "waiting"
    assert second.hold() is True
    assert second.release() is True
    worker.succeed("together")
    assert second.result(timeout=5) == "together"


def test_a_job_that_was_merged_is_found_in_the_life_before_too(queue: Queue, hand: Hands) -> None:
    worker = hand()
    queue.add(1, id="k")
    [run] = worker.take()
    second = queue.add(2, id="k")
    worker.end(run, Returned())
    worker.succeed("together")
    queue.add(3, id="k")

    with pytest.raises(StaleJob):
        second.result(timeout=5)


def test_a_result_that_was_heard_is_known_from_then_on(queue: Queue, hand: Hands) -> None:
    job = queue.add(1)
    hand().succeed("once")
    first = job.result(timeout=5)

    queue.drop()

    assert (first, job.result()) == ("once", "once")


def test_who_waits_is_told_of_the_progress_on_the_way(plain: Queue, hand: Hands) -> None:
    worker = hand()
    job = plain.add(1)
    [run] = worker.take()
    worker.report(run, 10)
    heard: list[object] = []

    def go_on(value: object) -> None:
        heard.append(value)
        if value == 10:
            worker.report(run, {"at": 60})
        else:
            worker.end(run, Succeeded(b'"top"'))

    assert job.result(timeout=20, on_progress=go_on) == "top"
    assert heard == [10, {"at": 60}]


def test_progress_is_told_on_a_loop_too_also_to_a_coroutine(skep_url: str, hand: Hands) -> None:
    worker = hand()
    heard: list[object] = []

    async def wait() -> object:
        async with AsyncQueue("mail", skep_url) as queue:
            job = await queue.add(1)
            [run] = worker.take()
            worker.report(run, 10)

            async def go_on(value: object) -> None:
                heard.append(value)
                await asyncio.sleep(0)
                if value == 10:
                    worker.report(run, 20)
                else:
                    worker.end(run, Succeeded(b"7"))

            return await job.result(timeout=20, on_progress=go_on)

    assert asyncio.run(wait()) == 7
    assert heard == [10, 20]


def test_progress_comes_without_any_history_and_its_errors_are_the_callers(plain: Queue, hand: Hands) -> None:
    plain.configure(history="none")
    worker = hand()
    job = plain.add(1)
    [run] = worker.take()
    worker.report(run, 1)

    def fail(value: object) -> None:
        raise TimeoutError(f"mine, at {value}")

    with pytest.raises(TimeoutError, match="mine, at 1"):
        job.result(timeout=20, on_progress=fail)


def test_nothing_is_left_of_those_who_waited(queue: Queue, hand: Hands) -> None:
    worker = hand()
    for n in range(30):
        job = queue.add(n)
        with pytest.raises(TimeoutError):
            job.result(timeout=0)
        worker.succeed(n)
        assert job.result(timeout=5) == n

    left = worker.store._command("HLEN", f"{queue.keys.base}:awaited")

    # Who asks after the end leaves a note that is swept when its time is over.
    assert left <= 30


def test_a_handle_that_retried_its_job_waits_for_the_new_life(queue: Queue, hand: Hands) -> None:
    worker = hand()
    job = queue.add(1)
    worker.fail()
    before = job.life

    assert job.retry() is True
    worker.succeed("at last")

    assert job.life != before
    assert job.result(timeout=5) == "at last"


def test_sixty_who_wait_at_once_each_get_their_own_result(plain: Queue, hand: Hands) -> None:
    worker = hand()
    jobs = [plain.add(i) for i in range(60)]

    with ThreadPoolExecutor(60) as pool:
        results = [pool.submit(job.result, timeout=20) for job in jobs]
        order = {job.id: i for i, job in enumerate(jobs)}
        for run in worker.take(60):
            worker.end(run, Succeeded(str(order[run.id]).encode()))
        heard = [result.result() for result in results]

    assert heard == list(range(60))


def test_only_one_thread_reads_for_all_who_wait(plain: Queue, hand: Hands) -> None:
    worker, before = hand(), set(threading.enumerate())
    jobs = [plain.add(i) for i in range(10)]

    with ThreadPoolExecutor(10) as pool:
        results = [pool.submit(job.result, timeout=20) for job in jobs]
        deadline = time.monotonic() + 10
        while not (readers := [each for each in set(threading.enumerate()) - before if "skep results" in each.name]):
            assert time.monotonic() < deadline
        for run in worker.take(10):
            worker.end(run, Succeeded(b"1"))
        assert [result.result() for result in results] == [1] * 10

    assert len(readers) == 1


def test_closing_the_queue_ends_the_waiting(plain: Queue) -> None:
    job = plain.add(1)

    closed = soon(plain.close)

    with pytest.raises(QueueClosed):
        job.result(timeout=20)
    closed.join()


def test_closing_an_asynchronous_queue_ends_the_waiting(skep_url: str) -> None:
    async def wait() -> None:
        queue = AsyncQueue("mail", skep_url)
        job = await queue.add(1)
        closing: list[asyncio.Task[None]] = []
        asyncio.get_running_loop().call_later(0.1, lambda: closing.append(asyncio.create_task(queue.close())))
        with pytest.raises(QueueClosed):
            await job.result(timeout=20)
        await closing[0]

    asyncio.run(wait())


def test_results_are_read_as_the_task_promises(faces: Faces, hand: Hands) -> None:
    queue = faces.make("mail")

    @queue.task
    def double(n: int) -> float:
        return 2.0 * n

    job = double.enqueue(1)
    hand("double").succeed(2)

    result = job.result(timeout=5)
    assert (result, type(result)) == (2.0, float)
