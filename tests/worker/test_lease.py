from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skep import lifecycle
from skep.core.options import JobOptions
from skep.errors import Cancelled
from skep.testing import Server
from skep.worker.context import current_job
from skep.worker.hooks import WorkerEvent
from skep.worker.worker import Worker
from tests.support.served import Served, until

ONCE = JobOptions(retries=0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, that keeps its data through a restart."""
    with Server(folder=tmp_path, appendonly=True, appendfsync="always") as made:
        yield made


def test_a_cancel_from_elsewhere_ends_an_async_run_without_a_retry(queue: Served) -> None:
    cut: list[str] = []

    @queue.task()
    async def nap() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cut.append("cut")
            raise

    with Worker(queue, lease=1):
        id = queue.add("nap")
        until(lambda: queue.status(id) == "active")
        queue.send(lifecycle.cancel(queue.keys, [(id, None)]))
        record = queue.ended(id)

    assert record.status == "cancelled"
    assert record.known.failures == 0
    assert cut == ["cut"]


def test_a_cancel_reaches_a_thread_by_callback_and_by_flag(queue: Served) -> None:
    called: list[str] = []

    @queue.task()
    def loops() -> None:
        job = current_job()
        job.on_cancel(lambda: called.append(job.id))
        while not job.cancelled:
            time.sleep(0.005)
        raise Cancelled

    with Worker(queue, lease=1):
        id = queue.add("loops")
        until(lambda: queue.status(id) == "active")
        queue.send(lifecycle.cancel(queue.keys, [(id, None)]))
        record = queue.ended(id)

    assert record.status == "cancelled"
    assert called == [id]


def test_a_run_that_succeeds_although_it_was_cancelled_is_a_success(queue: Served) -> None:
    @queue.task()
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return "saved"

    with Worker(queue, lease=1):
        id = queue.add("stubborn")
        until(lambda: queue.status(id) == "active")
        queue.send(lifecycle.cancel(queue.keys, [(id, None)]))

        assert queue.result(id) == "saved"


def test_a_handler_that_blocks_the_loop_within_its_timeout_loses_no_lease(queue: Served) -> None:
    @queue.task(options=JobOptions(retries=0, timeout=30))
    async def blocks() -> str:
        time.sleep(2.5)  # noqa: ASYNC251 - that is what it is about
        return "done"

    with Worker(queue, lease=1), Worker(queue, lease=1):
        assert queue.result(queue.add("blocks")) == "done"


def test_a_worker_that_was_taken_for_dead_stops_its_runs_and_begins_anew(queue: Served) -> None:
    ended: list[str] = []

    @queue.task()
    async def slow() -> str:
        if current_job().stalls:
            return "second run"
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(current_job().worker)
        return "first run"

    with Worker(queue, lease=1):
        id = queue.add("slow")
        until(lambda: queue.status(id) == "active")
        lease = queue.look(id).lease
        assert lease is not None
        queue.send(lifecycle.leave(queue.keys, lease.worker, died=True))

        assert queue.result(id) == "second run"
    assert ended == [lease.worker]
    assert queue.tally(id) == (2, 0, 1, 0)


def test_a_worker_that_was_taken_for_dead_tells_its_hooks_of_each_run_that_stalled(queue: Served) -> None:
    told: list[WorkerEvent] = []
    worker = Worker(queue, lease=1)
    worker.on("stalled")(told.append)

    @queue.task()
    async def slow() -> None:
        if not current_job().stalls:
            await asyncio.sleep(60)

    with worker:
        id = queue.add("slow")
        until(lambda: queue.status(id) == "active")
        lease = queue.look(id).lease
        assert lease is not None
        queue.send(lifecycle.leave(queue.keys, lease.worker, died=True))
        queue.ended(id)

    assert [(event.queue, event.job.id) for event in told if event.job] == [(queue.name, id)]


def test_a_dead_workers_jobs_wait_again_when_its_lease_is_over(queue: Served) -> None:
    @queue.task()
    async def go() -> str:
        return "ran"

    id = queue.add("go")
    knows = b"\x91\xa2go"
    queue.send(lifecycle.join(queue.keys, "deadbeef", lease=1000, info={}))
    queue.send(lifecycle.claim(queue.keys, "deadbeef", number=1, slots=1, lease=1000, knows=knows))

    with Worker(queue, lease=1):
        assert queue.result(id) == "ran"
    assert queue.tally(id) == (2, 0, 1, 0)


def test_a_worker_outlives_a_server_that_is_restarted_while_it_works(server: Server) -> None:
    queue = Served("mail", server.url)

    @queue.task(options=ONCE)
    async def nap(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    with Worker(queue, lease=5):
        running, late = queue.add("nap", {"seconds": 1.0}), queue.add("nap", {"seconds": 0}, delay=0.3)
        until(lambda: queue.status(running) == "active")
        server.restart()

        assert queue.result(running) == queue.result(late) == "done"
        assert queue.result(queue.add("nap", {"seconds": 0})) == "done"
        assert queue.tally(running) == (1, 0, 0, 0)


def test_a_run_whose_end_could_not_be_told_in_an_outage_is_told_after_it(server: Server) -> None:
    queue = Served("mail", server.url)
    runs: list[int] = []

    @queue.task(options=ONCE)
    async def nap() -> str:
        runs.append(1)
        await asyncio.sleep(0.3)
        return "done"

    worker, troubles = Worker(queue, lease=2), list[WorkerEvent]()
    worker.on("error")(troubles.append)
    with worker:
        id = queue.add("nap")
        until(lambda: runs)
        server.kill()
        # Renewals are a third of a second apart: these are more than a lease.
        until(lambda: len(troubles) > 8)
        server.start()

        assert queue.result(id) == "done"
    assert runs == [1]
    assert queue.tally(id) == (1, 0, 0, 0)


def test_a_worker_that_cannot_renew_ends_its_runs_before_its_lease(server: Server) -> None:
    queue = Served("mail", server.url)
    spans: list[tuple[float, float]] = []

    @queue.task(options=ONCE)
    async def slow() -> str:
        began = time.monotonic()
        try:
            await asyncio.sleep(1.2 if spans else 60)
        finally:
            spans.append((began, time.monotonic()))
        return "done"

    with Worker(queue, lease=2):
        id = queue.add("slow")
        until(lambda: queue.status(id) == "active")
        os.kill(server.pid, signal.SIGSTOP)
        frozen = time.monotonic()
        until(lambda: spans)
        os.kill(server.pid, signal.SIGCONT)

        assert queue.result(id) == "done"
    assert spans[0][1] - frozen < 2.0
    assert queue.tally(id) == (1, 0, 0, 0)


HANGS = """
import time
from skep import Queue, Worker
mail = Queue("mail")
@mail.task(retries=0, max_stalls=0)
async def hang():
    print("hanging", flush=True)
    time.sleep(600)
Worker(mail, lease=1).run()
"""


def test_a_process_whose_loop_hangs_ends_before_its_lease_and_shows_every_stack(
    queue: Served, skep_url: str, tmp_path: Path
) -> None:
    mail = Served("mail", skep_url)
    program = tmp_path / "hangs.py"
    program.write_text(HANGS.replace(", max_stalls=0", ""))
    mail.add("hang")

    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as hanging:
        _, errors = hanging.communicate(timeout=30)

    assert hanging.returncode == 1
    assert "time.sleep(600)" in errors or "hangs.py" in errors
    assert "Thread" in errors
