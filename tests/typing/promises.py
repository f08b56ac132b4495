"""What type checkers are to see of the API: never run, but checked by mypy and pyright with everything else.

A comment that ignores an error says that there is to be one: a checker that finds none complains.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import skep
from skep import Added, AsyncJob, AsyncQueue, Event, Job, Queue
from skep.core.job import JobError
from skep.core.states import JobState
from skep.pages import Page
from skep.several import Waited
from skep.views import Counts
from skep.watching import Stats, WorkerInfo

mail = Queue("mail")
amail = AsyncQueue("mail")


@mail.task
def add(a: int, b: int = 2) -> float:
    return a / b


@mail.task("fetch-page", retries=3)
async def fetch(url: str) -> bytes:
    return url.encode()


@amail.task
def aadd(a: int, b: int = 2) -> float:
    return a / b


@amail.task(priority="high")
async def afetch(url: str) -> bytes:
    return url.encode()


@mail.on("failed")
def failed(event: Event) -> int:
    return event.seq


@mail.handler
def run(job: skep.CurrentJob) -> None: ...


def tasks_keep_their_signature_and_jobs_know_their_result() -> None:
    assert_type(add(1, 2), float)
    assert_type(add.enqueue(1), Job[float])
    assert_type(add.enqueue(1, b=2).result(), float)
    assert_type(add.options(delay=5).enqueue(1).result(timeout=1), float)
    assert_type(fetch.enqueue("u").result(), bytes)
    assert_type(add.enqueue_many([(1, 2), {"a": 1}]), Added)
    add.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.enqueue(1, c=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def the_same_on_a_loop() -> None:
    assert_type(await fetch("u"), bytes)
    assert_type(await fetch.aenqueue("u"), AsyncJob[bytes])
    assert_type(await (await add.aenqueue(1)).result(), float)
    assert_type(aadd(1), float)
    assert_type(await aadd.enqueue(1), AsyncJob[float])
    assert_type(await (await afetch.enqueue("u")).result(), bytes)
    assert_type(await afetch("u"), bytes)
    await aadd.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def functions_that_are_noted_stay_what_they_are(event: Event, job: skep.CurrentJob) -> None:
    assert_type(failed(event), int)
    assert_type(event.details["data"], Any)
    assert_type(event.status, JobState | None)
    assert_type(run(job), None)
    mail.on("progress", lambda told: print(told.seq))
    add.enqueue(1).on("progress", lambda told: print(told.seq))


def options_are_checked_by_name_and_type() -> None:
    mail.add(1, priority="high", delay=5, retries=None)
    mail.add(1, dely=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    mail.add(1, retries="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.configure(history="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def queues_give_what_they_say(job: Job[int]) -> None:
    assert_type(mail.add({"a": 1}), Job[Any])
    assert_type(mail.add_many(range(5)), Added)
    assert_type(mail.get("id"), Job[Any] | None)
    assert_type(mail.get(["id"]), list[Job[Any] | None])
    assert_type(mail.jobs(), Iterator[Job[Any]])
    assert_type(mail.page(), Page[Job[Any]])
    assert_type(mail.counts(), Counts)
    assert_type(mail.cancel("id"), bool)
    assert_type(mail.cancel(["id"]), list[str])
    assert_type(mail.cancel(status="waiting"), int)
    assert_type(mail.update("id", priority="low"), bool)
    assert_type(mail.events(since=0), Iterator[Event])
    assert_type(mail.workers(), list[WorkerInfo])
    assert_type(mail.stats(), Stats)
    assert_type(mail.schedules(), list[Job[Any]])
    assert_type(job.refresh(), Job[int])
    assert_type(job.error, JobError | None)
    assert_type(job.events(), Iterator[Event])


async def asynchronous_ones_too() -> None:
    assert_type(await amail.add(1), AsyncJob[Any])
    assert_type(await amail.get("id"), AsyncJob[Any] | None)
    assert_type(await amail.get({"id"}), list[AsyncJob[Any] | None])
    assert_type(amail.jobs(), AsyncIterator[AsyncJob[Any]])
    assert_type(await amail.cancel(name="n"), int)
    assert_type(amail.events(), AsyncIterator[Event])
    assert_type(await amail.paused, bool)
    assert_type(mail.aio, AsyncQueue)


def several_jobs_keep_their_type(jobs: list[Job[int]]) -> None:
    assert_type(skep.wait(jobs), Waited[int])
    assert_type(skep.wait(jobs, timeout=5).done, list[Job[int]])
    assert_type(skep.as_completed(jobs), Iterator[Job[int]])
    assert_type([job.result() for job in skep.as_completed(jobs)], list[int])
    assert_type(skep.queues(), list[Queue])


def a_batch_checks_calls_like_the_task_itself() -> None:
    with mail.collect() as batch:
        assert_type(batch.add(1), str)
        assert_type(batch.enqueue(add, 1, b=2), str)
        batch.enqueue(add, "1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def a_job_of_a_number_is_one_of_an_object(job: Job[int]) -> Job[object]:
    return job
