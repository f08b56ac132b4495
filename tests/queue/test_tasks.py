from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest

from skep import Backoff, InvalidOption, JobOptions, Queue, lifecycle
from skep.core.outcome import Failed
from skep.core.record import pack, read
from skep.handler import FailureHandler, QueueHandler, TaskHandler
from tests.support.hand import Hand

Hands = Callable[..., Hand]


def greet(user_id: int, lang: str = "en") -> str:
    """Greets."""
    return f"{user_id} {lang}"


async def agreet(user_id: int) -> str:
    return str(user_id)


def test_a_task_adds_jobs_that_call_its_function_by_name(queue: Queue) -> None:
    task = queue.task(greet)

    job = task.enqueue(42, lang="fr")

    found = queue.get(job.id)
    assert found is not None
    assert (found.task, found.data) == ("greet", {"user_id": 42, "lang": "fr"})


@pytest.mark.parametrize("name", ["send-welcome", "é☃"])
def test_a_task_may_have_a_name_of_its_own(queue: Queue, name: str) -> None:
    task = queue.task(name, retries=5)(greet)

    assert task.name == name
    assert task.enqueue(1).task == name


@pytest.mark.parametrize("name", ["", "on_failure", "on_failure:x", "x" * 201, 5])
def test_names_that_a_task_cannot_have_are_refused(queue: Queue, name: Any) -> None:
    with pytest.raises(InvalidOption):
        queue.task(name)(greet)


def test_a_function_without_a_name_needs_one(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match="name"):
        queue.task()(lambda: 1)


def test_a_task_is_still_its_function(plain: Queue) -> None:
    task, coroutine = plain.task(greet), plain.task(agreet)

    assert task(1, "fr") == "1 fr"
    assert asyncio.run(coroutine(2)) == "2"
    assert task.__doc__ == "Greets."
    assert inspect.signature(task) == inspect.signature(greet)


def test_a_wrong_call_is_a_type_error_and_nothing_is_added(queue: Queue) -> None:
    task = queue.task(greet)

    calls: list[tuple[Any, Any]] = [((), {}), ((1, 2, 3), {}), ((1,), {"colour": "red"})]
    for args, kwargs in calls:
        with pytest.raises(TypeError):
            task.enqueue(*args, **kwargs)

    assert queue.counts().total == 0


def test_options_of_the_call_go_before_those_of_the_task_and_the_queue(skep_url: str) -> None:
    with Queue("mail", defaults=JobOptions(priority="low", name="queue")) as queue:
        task = queue.task(priority="high", retries=7)(greet)

        jobs = [task.enqueue(1), task.options(priority="lowest", delay=5, id="x").options(retries=1).enqueue(1)]

        found = [each for each in queue.get([job.id for job in jobs]) if each]
        assert [(job.priority, job.name, job.status) for job in found] == [
            (20, "queue", "waiting"),
            (60, "queue", "scheduled"),
        ]
        # What matters from the run on is said by the task where the worker is, or by the job itself.
        assert [job.options.retries for job in found if job.id == "x"] == [1]
        assert found[0].options == JobOptions(priority=20, name="queue")


def test_many_calls_are_added_in_order(queue: Queue, hand: Hands) -> None:
    task = queue.task(greet)

    added = task.enqueue_many([(1,), {"user_id": 2, "lang": "fr"}, (3, "de")], ids=True)

    found = queue.get(added.ids or [])
    assert added.count == 3
    assert [job and job.data for job in found] == [
        {"user_id": 1},
        {"user_id": 2, "lang": "fr"},
        {"user_id": 3, "lang": "de"},
    ]
    assert [run.id for run in hand("greet").take(3)] == added.ids


def test_a_wrong_call_among_many_is_told_by_its_index(queue: Queue) -> None:
    task = queue.task(greet)

    with pytest.raises(TypeError) as caught:
        task.enqueue_many([(1,), (1, 2, 3)])

    assert "items[1]" in str(caught.value.__notes__)
    assert queue.counts().total == 0


def test_an_asynchronous_caller_uses_the_twin_of_a_task(plain: Queue) -> None:
    task = plain.task(greet)

    async def call() -> Any:
        job = await task.options(priority="high").aenqueue(1)
        await plain.aio.close()
        return job

    job = asyncio.run(call())
    found = plain.get(job.id)
    assert found is not None
    assert (found.data, found.priority) == ({"user_id": 1}, 20)


def test_an_equal_call_of_a_unique_task_is_ignored_while_one_is_unfinished(queue: Queue, hand: Hands) -> None:
    task = queue.task(unique=True)(greet)

    first, same, other = task.enqueue(1), task.enqueue(1, lang="en"), task.enqueue(1, "fr")
    hand("greet").take()
    running = task.enqueue(1)

    assert [job.outcome for job in (first, same, other, running)] == ["added", "ignored", "added", "ignored"]
    assert first.id == same.id == running.id != other.id


def test_a_unique_task_may_name_the_arguments_that_count(queue: Queue, hand: Hands) -> None:
    task = queue.task(unique=("user_id",))(greet)

    first, same = task.enqueue(1), task.enqueue(1, "fr")
    hand("greet").succeed()
    again = task.enqueue(1, "de")
    many = task.enqueue_many([(1,), (2,), (2,)])

    assert [job.outcome for job in (first, same, again)] == ["added", "ignored", "added"]
    assert (many.count, many.ignored) == (1, 2)


def test_a_window_holds_also_after_the_end_of_the_job(queue: Queue, hand: Hands) -> None:
    task = queue.task(unique=True, window=600)(greet)

    first = task.enqueue(1)
    hand("greet").succeed()
    second = task.enqueue(1)

    assert [first.outcome, second.outcome] == ["added", "ignored"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"unique": "user_id"},
        {"unique": ("nobody",)},
        {"unique": 5},
        {"window": 5},
        {"executor": "moon"},
        {"concurrency": 0},
        {"retry_on": ("x",)},
        {"backoff": "wow"},
        {"cron": "nonsense"},
        {"aliases": {"a": "b"}},
        {"retries": -1},
    ],
)
def test_what_cannot_be_said_of_a_task_is_refused_when_it_is_made(queue: Queue, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        queue.task(**wrong)(greet)


@pytest.mark.parametrize("wrong", ["id", "run_at", "repeat", "max_stalls", "colour"])
def test_what_nobody_says_of_a_task_is_a_type_error(queue: Queue, wrong: str) -> None:
    made: Any = queue

    with pytest.raises(TypeError, match=wrong):
        made.task(**{wrong: 1})(greet)


def test_the_worker_finds_all_that_was_said_of_a_task(plain: Queue) -> None:
    def mine(attempt: int, error: BaseException) -> float:
        return attempt

    plain.task(
        "t",
        retries=2,
        timeout=5,
        keep=60,
        max_logs=3,
        backoff=mine,
        executor="process",
        concurrency=2,
        store_result=False,
        retry_on=(OSError, KeyError),
        fail_on=ValueError,
        every=60,
    )(agreet)

    handler = plain.registry.find("t")
    assert isinstance(handler, TaskHandler)
    assert handler.options == JobOptions(retries=2, timeout=5, keep=60, max_logs=3)
    assert (handler.backoff, handler.executor, handler.concurrency) == (mine, "process", 2)
    assert (handler.retry_on, handler.fail_on, handler.store_result) == ((OSError, KeyError), (ValueError,), False)
    assert (handler.is_async, handler.wants_job, handler.schedule) == (True, False, JobOptions(every=60))
    assert handler.encode({"secret": 1}) == b"null"


def test_the_handler_of_a_queue_wants_the_job_itself(queue: Queue) -> None:
    @queue.handler(concurrency=10, retries=1)
    def run(job: Any) -> Any:
        return job

    handler = queue.registry.find("")
    assert isinstance(handler, QueueHandler)
    assert (handler.function("job"), handler.wants_job, handler.concurrency) == ("job", True, 10)
    assert queue.registry.names() == [""]


def test_a_queue_and_its_twin_have_the_same_handlers(plain: Queue) -> None:
    @plain.aio.task
    async def work() -> None: ...

    @plain.handler
    def run(job: Any) -> None: ...

    assert plain.registry.names() == plain.aio.registry.names() == ["work", ""]


def test_failure_handlers_are_known_by_their_tasks_and_try_for_long(queue: Queue) -> None:
    task = queue.task(greet)

    @task.on_failure
    def of_task(job: Any, error: Any) -> Any:
        return job, error

    @queue.on_failure(retries=3)
    async def of_all(failed: Any, why: Any) -> Any:
        return failed, why

    first, second = queue.registry.find("on_failure:greet"), queue.registry.find("on_failure")
    assert isinstance(first, FailureHandler)
    assert isinstance(second, FailureHandler)
    assert first.options == JobOptions(retries=100, backoff=Backoff.exponential(10, 900))
    assert (second.options.retries, second.is_async, first.is_async) == (3, True, False)
    assert queue.registry.failure_tasks() == {"greet": True, "*": True}


def test_a_failure_handler_is_given_the_failed_job_and_its_error(plain: Queue, hand: Hands) -> None:
    task = plain.task(greet)

    @task.on_failure
    def told(job: Any, error: Any) -> Any:
        return job, error

    worker = hand("greet", "on_failure:greet")
    send = plain._link.send
    send(lifecycle.configure(plain.keys, {"on_failure": pack(plain.registry.failure_tasks())}))
    job = task.options(meta={"m": 1}, id="k").enqueue(7)
    worker.end(worker.take()[0], Failed(b'{"type":"ValueError","message":"no 7"}'))

    [run] = worker.take()
    handler = plain.registry.find("on_failure:greet")
    assert handler is not None
    failed, error = handler.function(**handler.bind(read(run.record).data))
    assert run.id.startswith("failure-")
    assert (failed.id, failed.life, failed.data, failed.status, failed.attempts) == (
        "k",
        job.life,
        {"user_id": 7},
        "failed",
        1,
    )
    assert (failed.task, failed.meta, error.message, error.kind) == ("greet", {"m": 1}, "no 7", "error")
    assert failed.retry() is True


def test_a_schedule_in_code_says_nothing_of_single_jobs(queue: Queue) -> None:
    task = queue.task(cron="0 9 * * *")(greet)

    job = task.enqueue(1)

    assert job.status == "waiting"
    assert job.options == JobOptions()


def test_enqueueing_is_quick_for_what_it_does(plain: Queue) -> None:
    task = plain.task(greet)
    began = time.process_time()

    for i in range(200):
        task._one((i,), {"lang": "fr"})

    assert time.process_time() - began < 0.1
