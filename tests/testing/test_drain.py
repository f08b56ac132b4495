from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from skep import AsyncQueue, Backoff, Cancelled, CurrentJob, PermanentError, Queue, Retry, current_job
from skep.errors import BlockingCall
from skep.testing import GivenClock, drain


@pytest.fixture
def clock() -> GivenClock:
    return GivenClock()


@pytest.fixture
def mail(skep_url: str, clock: GivenClock) -> Iterator[Queue]:
    with Queue("mail", skep_url, clock=clock) as queue:
        yield queue


def test_all_that_is_due_runs_in_order_and_is_settled(mail: Queue) -> None:
    @mail.task
    def double(n: int) -> int:
        return 2 * n

    jobs = [double.enqueue(n) for n in range(3)]
    later = double.options(delay=60).enqueue(9)

    runs = drain(mail)

    assert [(run.id, run.result, run.status, run.number) for run in runs] == [
        (job.id, 2 * n, "succeeded", 1) for n, job in enumerate(jobs)
    ]
    assert [job.result(timeout=1) for job in jobs] == [0, 2, 4]
    assert later.refresh().status == "scheduled"
    assert mail.workers() == []


def test_what_becomes_due_by_the_given_clock_runs_then(mail: Queue, clock: GivenClock) -> None:
    @mail.task
    def late() -> str:
        return current_job().started_at.isoformat()

    late.options(delay=3600).enqueue()
    before = drain(mail)
    clock.advance(3599)
    just_before = drain(mail)
    clock.advance(timedelta(seconds=1))

    [run] = drain(mail)

    assert before == just_before == []
    assert run.result == clock.now.isoformat()


def test_a_cron_line_runs_once_for_each_day_of_the_given_clock(mail: Queue, clock: GivenClock) -> None:
    days = []

    @mail.task(cron="0 9 * * *")
    def report() -> None:
        days.append(current_job().run_at.date())

    drain(mail)
    for _ in range(3):
        clock.advance(86_400)
        drain(mail)

    assert len(days) == len(set(days)) == 3


def test_jobs_that_handlers_add_run_in_the_same_drain(mail: Queue) -> None:
    @mail.task
    def outer() -> None:
        inner.enqueue(4)

    @mail.task
    async def inner(n: int) -> int:
        await asyncio.sleep(0)
        return n

    outer.enqueue()

    runs = drain(mail)

    assert [(run.task, run.result) for run in runs] == [("outer", None), ("inner", 4)]


def test_data_and_results_go_through_json_as_they_do_with_a_worker(mail: Queue) -> None:
    @mail.task
    def shape(pair: tuple[int, int], parts: set[str]) -> tuple[int, ...]:
        assert type(pair) is tuple
        assert type(parts) is set
        return pair

    shape.enqueue((1, 2), {"a"})
    mail.add({"pair": "no", "parts": []}, task="shape")

    good, bad = drain(mail, raise_errors=False)

    assert (good.result, good.data) == ((1, 2), {"pair": [1, 2], "parts": ["a"]})
    assert bad.status == "failed"
    assert "pair" in str(bad.error)


def test_an_error_is_raised_when_its_run_is_settled(mail: Queue) -> None:
    @mail.task(retries=0)
    def fails() -> None:
        raise LookupError("no user 13")

    job = fails.enqueue()

    with pytest.raises(LookupError, match="no user 13") as caught:
        drain(mail)

    assert job.refresh().status == "failed"
    assert "drain()" in caught.value.__notes__[0]
    assert mail.workers() == []


def test_retries_wait_for_their_time_and_end_in_failure_and_its_handler(mail: Queue, clock: GivenClock) -> None:
    told = []

    @mail.task(retries=2, backoff=Backoff.fixed(10))
    async def fails() -> None:
        raise LookupError("still not")

    @mail.on_failure
    def note(job: Any, error: Any) -> None:
        told.append((job.id, error.message))

    job = fails.enqueue()
    statuses = []
    for _ in range(3):
        statuses.append([run.status for run in drain(mail, raise_errors=False)])
        clock.advance(10)

    assert statuses == [["retrying"], ["retrying"], ["failed", "succeeded"]]
    assert told == [(job.id, "still not")]


def test_what_a_handler_asks_for_is_no_error(mail: Queue) -> None:
    @mail.handler
    def asks(job: CurrentJob) -> None:
        raise {"retry": Retry(after=60), "cancel": Cancelled("enough")}[job.data]

    mail.add("retry")
    mail.add("cancel")

    runs = drain(mail)

    assert [run.status for run in runs] == ["retrying", "cancelled"]


def test_a_permanent_error_is_raised_without_retries(mail: Queue) -> None:
    @mail.task
    def broken() -> None:
        raise PermanentError("never")

    broken.enqueue()

    with pytest.raises(PermanentError, match="never"):
        drain(mail)


def test_progress_logs_and_state_work_as_they_do_in_a_worker(mail: Queue) -> None:
    @mail.lifespan
    @contextmanager
    def pools() -> Generator[str]:
        yield "a pool"

    @mail.task
    def chatty() -> str:
        current_job().report_progress(50, "half way")
        return str(current_job().state)

    job = chatty.enqueue()

    [run] = drain(mail)

    assert run.result == "a pool"
    assert job.refresh().progress == 50
    assert [line.text for line in job.logs()] == ["half way"]


def test_plain_handlers_run_in_the_thread_of_the_test_whatever_their_executor(mail: Queue) -> None:
    @mail.task(executor="process")
    def where() -> int:
        return threading.get_ident()

    where.enqueue()

    [run] = drain(mail)

    assert run.result == threading.get_ident()


def test_an_async_run_past_its_timeout_is_ended_and_counted(mail: Queue) -> None:
    @mail.task(timeout=0.05, retries=0)
    async def slow() -> None:
        await asyncio.Event().wait()

    job = slow.enqueue()

    [run] = drain(mail, raise_errors=False)

    assert run.status == "failed"
    assert job.refresh().timeouts == 1


def test_jobs_of_unknown_tasks_are_set_aside_and_those_behind_them_run(mail: Queue) -> None:
    @mail.task
    def known() -> str:
        return "ran"

    mail.add_many([{}] * 700, task="unknown")
    known.enqueue()

    runs = drain(mail)

    assert [run.result for run in runs] == ["ran"]
    assert mail.counts().held == 700


def test_a_paused_queue_runs_nothing(mail: Queue) -> None:
    @mail.task
    def known() -> None: ...

    known.enqueue()
    mail.pause()

    assert drain(mail) == []


def test_what_is_no_error_of_the_program_ends_the_drain_and_uses_no_attempt(mail: Queue) -> None:
    @mail.task
    def skips() -> None:
        pytest.skip("not today")

    job = skips.enqueue()

    with pytest.raises(pytest.skip.Exception):
        drain(mail)

    assert (job.refresh().status, job.attempts) == ("waiting", 0)


def test_a_clock_that_goes_on_for_days_within_a_run_costs_nothing(mail: Queue, clock: GivenClock) -> None:
    @mail.task
    def waits() -> str:
        clock.advance(timedelta(days=3))
        return "done"

    waits.enqueue()
    waits.enqueue()

    runs = drain(mail)

    assert [run.status for run in runs] == ["succeeded"] * 2
    assert mail.counts().succeeded >= 1  # the first one's hour of retention is over


def test_an_asynchronous_queue_is_drained_on_its_loop(skep_url: str, clock: GivenClock) -> None:
    async def test() -> None:
        async with AsyncQueue("mail", skep_url, clock=clock) as mail:
            loop = asyncio.get_running_loop()

            @mail.task
            async def on_loop() -> bool:
                return asyncio.get_running_loop() is loop

            @mail.task
            def beside() -> str:
                return current_job().id

            await on_loop.enqueue()
            job = await beside.options(delay=5).enqueue()
            first = await drain(mail)
            clock.advance(5)
            second = await drain(mail)

        assert [run.result for run in (*first, *second)] == [True, job.id]

    asyncio.run(test())


def test_a_plain_queue_is_not_drained_on_a_running_loop(mail: Queue) -> None:
    async def test() -> None:
        with pytest.raises(BlockingCall, match=r"queue\.aio"):
            drain(mail)

    asyncio.run(test())


def test_a_clock_that_would_go_back_is_refused(clock: GivenClock) -> None:
    with pytest.raises(ValueError, match="go back"):
        clock.advance(-1)
