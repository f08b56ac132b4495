from __future__ import annotations

import asyncio
import builtins
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from skep import AsyncQueue, Connection, InvalidOption, JobOptions, Queue, QueueClosed, ServerUnavailable
from skep.errors import BlockingCall, InvalidName
from skep.testing import Server


def test_making_a_queue_touches_nothing() -> None:
    queue = Queue("mail", "redis://127.0.0.1:1")

    assert "127.0.0.1" in repr(queue)
    assert queue.key_prefix == "skep:{mail}"
    queue.close()


@pytest.mark.parametrize("name", ["", "a{b", "x" * 201, 5])
def test_a_queue_needs_a_name_that_can_be_one(name: Any) -> None:
    with pytest.raises(InvalidName):
        Queue(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "nonsense"},
        {"priority": "urgent"},
        {"prefix": "a}b"},
        {"max_waiting": -1},
        {"defaults": JobOptions(id="x")},
        {"defaults": JobOptions(run_at=5)},
    ],
)
def test_wrong_words_of_a_queue_are_refused_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Queue("mail", **wrong)


def test_an_unknown_keyword_of_a_queue_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Queue("mail", colour="red")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_a_password_is_never_shown() -> None:
    queue = Queue("mail", "redis://user:secret@host")

    assert "secret" not in repr(queue)


def test_a_closed_queue_refuses_every_call_and_a_second_close_is_none(plain: Queue) -> None:
    job = plain.add(1)
    task = plain.task(lambda_task)
    plain.close()
    plain.close()

    calls: list[Callable[[], Any]] = [
        lambda: plain.add(2),
        plain.counts,
        lambda: plain.get(job.id),
        lambda: plain.cancel(job.id),
        plain.pause,
        plain.drop,
        plain.ping,
        lambda: plain.paused,
        lambda: list(plain.jobs()),
        lambda: plain.add_many([1]),
        task.enqueue,
        job.result,
        job.refresh,
        lambda: plain.connection,
    ]
    for call in calls:
        with pytest.raises(QueueClosed, match="mail"):
            call()


def lambda_task() -> None: ...


def test_a_queue_that_never_reached_its_server_closes_quietly() -> None:
    queue = Queue("mail", Connection("redis://127.0.0.1:1/0", connect_timeout=1, retry_for=0.1))

    with pytest.raises(ServerUnavailable) as caught:
        queue.add(1)
    queue.close()

    assert caught.value.maybe_done is False
    with pytest.raises(QueueClosed):
        queue.add(2)


def test_a_shared_connection_outlives_the_closing_of_one_queue(skep_url: str) -> None:
    connection = Connection(skep_url)
    first, second = Queue("x", connection), Queue("y", connection)
    first.add(1)
    second.add(1)

    first.close()
    second.add(2)

    assert second.counts().waiting == 2
    second.close()


def test_a_block_closes_the_queue_at_its_end(skep_url: str) -> None:
    with Queue("mail") as queue:
        queue.add(1)

    with pytest.raises(QueueClosed):
        queue.add(2)


def test_a_closed_queue_tells_of_no_events_and_takes_no_batch(queue: Queue) -> None:
    job = queue.add(1)
    batch = queue.collect()
    batch.add(2)
    queue.close()

    for refused in (
        lambda: next(iter(queue.events())),
        lambda: next(iter(job.events())),
        queue.listen,
        lambda: queue.listening().__enter__(),
        queue.workers,
        queue.schedules,
        queue.stats,
        batch.send,
        lambda: job.result(timeout=1),
    ):
        with pytest.raises(QueueClosed):
            refused()


def test_nothing_stays_open_behind_a_closed_queue(skep_server: Server, skep_url: str) -> None:
    client = skep_server.client()
    before = len(client.client_list())

    async def use() -> None:
        async with AsyncQueue("mail") as queue:
            await queue.add(1)

    with Queue("mail") as queue:
        queue.add(1)
    asyncio.run(use())

    assert len(client.client_list()) <= before
    client.close()


def test_queues_of_one_name_and_other_prefixes_or_databases_are_others(skep_url: str) -> None:
    names = [Queue("mail", prefix="one"), Queue("mail", prefix="two"), Queue("mail", f"{skep_url}?db=1")]

    names[0].add(1, id="k")

    assert [queue.counts().total for queue in names] == [1, 0, 0]
    assert len({queue.key_prefix for queue in names}) == 2 + 1
    for queue in names:
        queue.close()


def test_a_queue_travels_by_name_and_url(plain: Queue) -> None:
    plain.add(1)
    named = Queue("mail", prefix="skep", defaults=JobOptions(priority="high"), max_payload=50, max_waiting=5)

    copies = [pickle.loads(pickle.dumps(each)) for each in (plain, named)]  # noqa: S301 - our own

    assert [copy.counts().waiting for copy in copies] == [1, 1]
    assert (copies[1].add(2).priority, copies[1].settings_in_code) == (20, {"max_waiting": 5})
    for each in (*copies, named):
        each.close()


def test_an_asynchronous_queue_and_a_job_travel_too(plain: Queue) -> None:
    twin = pickle.loads(pickle.dumps(AsyncQueue("mail")))  # noqa: S301 - our own

    assert isinstance(twin, AsyncQueue)
    assert twin.key_prefix == plain.key_prefix


def _add(queue: Queue, there: Any) -> None:
    there.send([queue.add(i).id for i in range(20)])


def test_a_queue_survives_a_fork(plain: Queue) -> None:
    plain.add(1)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    child = context.Process(target=_add, args=(plain, there))
    child.start()
    ours = [plain.add(i).id for i in range(20)]
    theirs = here.recv()
    child.join()

    assert plain.counts().waiting == 41
    assert not set(ours) & set(theirs)


def test_a_blocking_call_on_a_running_loop_names_its_twin(plain: Queue) -> None:
    task = plain.task(lambda_task)
    job = plain.add(1)

    async def block() -> list[str]:
        told: list[str] = []
        for call in (plain.counts, lambda: list(plain.jobs()), task.enqueue, lambda: job.result(timeout=1)):
            with pytest.raises(BlockingCall) as caught:
                call()
            told.append(caught.value.twin)
        return told

    twins = asyncio.run(block())

    assert twins[0] == "await queue.aio.counts(...)"
    assert "queue.aio" in twins[1]
    assert "aenqueue" in twins[2]
    assert "await" in twins[3]
    assert "result" in twins[3]


def test_a_notebook_may_block_its_own_loop(plain: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)

    async def cell() -> int:
        plain.add(1)
        return plain.counts().waiting

    assert asyncio.run(cell()) == 1


def test_threads_beside_a_loop_may_block(plain: Queue) -> None:
    async def work() -> int:
        await asyncio.to_thread(plain.add, 1)
        return (await asyncio.to_thread(plain.counts)).waiting

    assert asyncio.run(work()) == 1


def test_what_a_worker_writes_when_it_starts_is_what_is_named_in_code() -> None:
    queue = Queue(
        "mail", "unix:///nowhere", defaults=JobOptions(retries=3, timeout=None, priority="high"), history="none"
    )

    assert dict(queue.settings_in_code) == {"history": "none", "retries": 3, "timeout": ""}
    queue.close()
