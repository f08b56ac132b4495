from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from skep.core.options import JobOptions
from skep.core.retry import Backoff
from skep.errors import Cancelled, InvalidOption
from skep.worker.context import CurrentJob, current_job
from skep.worker.hooks import WorkerEvent
from skep.worker.middleware import Next
from skep.worker.worker import Worker
from tests.support.served import Served, until

KINDS = ("ready", "started", "progress", "succeeded", "retrying", "failed", "stalled", "returned", "cancelled", "error")


def task_of_many_ends(queue: Served) -> None:
    @queue.task(options=JobOptions(retries=1, backoff=Backoff.none()))
    async def go(how: str) -> str:
        job = current_job()
        if how == "ok":
            job.report_progress(1)
        if how == "cancel":
            raise Cancelled
        if how == "bad" or (how == "flaky" and not job.failures):
            raise ValueError(how)
        return how


def test_hooks_are_told_of_what_happens_in_their_worker(queue: Served) -> None:
    heard: list[WorkerEvent] = []
    worker = Worker(queue)
    for kind in KINDS:
        worker.on(kind)(heard.append)
    task_of_many_ends(queue)

    with worker:
        ids = {how: queue.add("go", {"how": how}) for how in ("ok", "flaky", "bad", "cancel")}
        until(lambda: len(heard) == 14)

    told = Counter(event.type for event in heard)
    assert told == {"ready": 1, "started": 6, "progress": 1, "succeeded": 2, "retrying": 2, "failed": 1, "cancelled": 1}
    [failed] = [event for event in heard if event.type == "failed"]
    assert failed.job is not None
    assert failed.job.id == ids["bad"]
    assert failed.error is not None
    assert failed.error.message == "bad"


def test_a_hook_that_fails_hurts_no_job_and_async_hooks_are_awaited(queue: Served) -> None:
    heard: list[str] = []
    worker = Worker(queue)

    @worker.on("started")
    def broken(event: WorkerEvent) -> None:
        raise RuntimeError("broken hook")

    @worker.on("succeeded")
    async def hears(event: WorkerEvent) -> None:
        heard.append(event.type)

    task_of_many_ends(queue)
    with worker:
        queue.ended(queue.add("go", {"how": "ok"}))
        until(lambda: heard)

    assert heard == ["succeeded"]


def test_a_hook_for_what_never_happens_is_refused(queue: Served) -> None:
    with pytest.raises(InvalidOption, match="kind takes one of ready"):
        Worker(queue).on("exploded")


@pytest.mark.parametrize("task", ["on_the_loop", "in_a_thread"])
def test_middleware_stands_around_each_attempt_the_first_outermost(queue: Served, task: str) -> None:
    order: list[str] = []

    def named(name: str) -> Callable[[CurrentJob, Next], Awaitable[Any]]:
        async def around(job: CurrentJob, call_next: Next) -> Any:
            order.append(f"{name} {job.task}")
            try:
                return await call_next() + 1
            finally:
                order.append(f"{name} ends")

        return around

    @queue.task()
    async def on_the_loop() -> int:
        order.append("handler")
        return 0

    @queue.task()
    def in_a_thread() -> int:
        order.append("handler")
        return 0

    with Worker(queue, middleware=[named("outer"), named("inner")]):
        assert queue.result(queue.add(task)) == 2

    assert order == [f"outer {task}", f"inner {task}", "handler", "inner ends", "outer ends"]


@pytest.mark.parametrize(("task", "error_seen"), [("on_the_loop", "CancelledError"), ("in_a_thread", "JobTimeout")])
def test_timeouts_reach_handlers_through_middleware(queue: Served, task: str, error_seen: str) -> None:
    seen: list[str] = []

    async def around(job: CurrentJob, call_next: Next) -> Any:
        try:
            return await call_next()
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    once = JobOptions(retries=0, timeout=0.1)

    @queue.task(options=once)
    async def on_the_loop() -> None:
        await asyncio.sleep(60)

    @queue.task(options=once)
    def in_a_thread() -> None:
        while True:
            pass

    with Worker(queue, middleware=[around]):
        error = queue.ended(queue.add(task)).error

    assert error is not None
    assert error.kind == "timeout"
    assert seen == [error_seen]


def test_what_a_lifespan_gives_is_the_state_of_each_job(queue: Served) -> None:
    order: list[str] = []
    worker = Worker(queue)

    @worker.lifespan
    @asynccontextmanager
    async def pool() -> AsyncGenerator[str]:
        order.append("opened")
        yield "pool"
        order.append("closed")

    @queue.task()
    async def go() -> str:
        order.append("ran")
        return str(current_job().state)

    with worker:
        assert queue.result(queue.add("go")) == "pool"
    assert order == ["opened", "ran", "closed"]


@pytest.mark.parametrize("kind", ["generator", "async generator", "context manager"])
def test_a_lifespan_may_be_plain_or_async_and_of_the_queue(queue: Served, kind: str) -> None:
    order: list[str] = []

    def plain() -> Generator[str]:
        order.append("opened")
        yield "state"
        order.append("closed")

    async def of_a_loop() -> AsyncGenerator[str]:
        for step in plain():
            yield step

    made = {"generator": plain, "async generator": of_a_loop, "context manager": contextmanager(plain)}
    queue.registry.lifespan = made[kind]

    @queue.task()
    def go() -> str:
        return str(current_job().state)

    with Worker(queue):
        assert queue.result(queue.add("go")) == "state"
    assert order == ["opened", "closed"]


def test_a_lifespan_that_fails_keeps_the_worker_from_starting(queue: Served) -> None:
    worker = Worker(queue)

    @worker.lifespan
    def broken() -> Iterator[None]:
        raise OSError("no database")

    with pytest.raises(OSError, match="no database"), worker:
        pass


def test_an_attempt_is_a_line_in_the_log_and_a_failure_an_error_with_its_traceback(
    queue: Served, caplog: pytest.LogCaptureFixture
) -> None:
    task_of_many_ends(queue)

    with caplog.at_level(logging.INFO, "skep.worker"), Worker(queue, log_level=logging.INFO):
        queue.ended(queue.add("go", {"how": "flaky"}))
        queue.ended(queue.add("go", {"how": "bad"}))

    lines = [record for record in caplog.records if "job" in record.getMessage()]
    assert [line.getMessage().split()[-1] for line in lines if line.levelname == "INFO"] == [
        "retrying",
        "succeeded",
        "retrying",
    ]
    [failure] = [line for line in lines if line.levelname == "ERROR"]
    assert "failed for good: ValueError: bad" in failure.getMessage()
    assert failure.exc_info is not None
