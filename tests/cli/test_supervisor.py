from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from skep import Queue
from tests.cli.conftest import Start
from tests.support.served import until


def loaded(app: Path) -> set[int]:
    """The processes that have imported the program."""
    return {int(each.name.partition("-")[2]) for each in app.glob("loaded-*")}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def end(supervisor: subprocess.Popen[str]) -> int:
    supervisor.send_signal(signal.SIGTERM)
    return supervisor.wait(20)


def test_several_processes_share_the_work_and_the_supervisor_imports_none_of_it(
    start: Start, mail: Queue, app: Path
) -> None:
    jobs = [mail.add({"seconds": 0.3}, task="nap") for _ in range(4)]
    supervisor = start("worker", "app:mail", "--processes", "2", "--concurrency", "2")

    where = {job.result(timeout=20) for job in jobs}

    assert end(supervisor) == 0
    assert len(where) == 2
    assert len(loaded(app)) == 2
    assert supervisor.pid not in loaded(app)


def test_a_worker_that_dies_is_replaced_and_its_job_runs_again_at_once(start: Start, mail: Queue) -> None:
    supervisor, began = start("worker", "app:mail"), time.monotonic()

    job = mail.add(task="die_once")

    # Its lease of 30 s would be over much later.
    assert job.result(timeout=20) == "alive"
    assert time.monotonic() - began < 20
    assert (job.refresh().attempts, job.stalls) == (2, 1)
    assert end(supervisor) == 0


def test_workers_end_when_their_supervisor_is_killed_and_their_runs_wait_again(
    start: Start, mail: Queue, app: Path
) -> None:
    job, supervisor = mail.add({"seconds": 60}, task="nap"), start("worker", "app:mail", "--processes", "2")
    until((app / "napping").exists)
    until(lambda: len(loaded(app)) == 2)

    supervisor.kill()
    supervisor.wait()

    until(lambda: not any(is_running(pid) for pid in loaded(app)))
    assert job.refresh().status == "waiting"
    assert job.attempts == 0


def test_a_thread_that_cannot_be_ended_ends_with_its_process_and_is_handed_back(
    start: Start, mail: Queue, app: Path
) -> None:
    job = mail.add({"seconds": 60}, task="stubborn")
    supervisor = start("worker", "app:mail", "--grace", "0.1")
    until((app / "napping").exists)

    code = end(supervisor)

    assert code == 0
    assert job.refresh().status == "waiting"
    assert (job.attempts, job.stalls) == (0, 0)


def test_the_worker_that_replaces_a_killed_one_serves_on(start: Start, mail: Queue, app: Path) -> None:
    supervisor = start("worker", "app:mail")
    until(lambda: loaded(app))
    [worker] = loaded(app)
    until(lambda: mail.add({"seconds": 0}, task="nap").result(timeout=20))

    os.kill(worker, signal.SIGKILL)

    until(lambda: len(loaded(app)) == 2)
    assert mail.add({"seconds": 0}, task="nap").result(timeout=20) != f"slept in {worker}"
    assert end(supervisor) == 0
