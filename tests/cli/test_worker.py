from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from skep import Queue
from tests.cli.conftest import Start
from tests.support.served import until


def says(worker: subprocess.Popen[str], word: str) -> None:
    """Returns when it has logged this word."""
    assert worker.stderr is not None
    assert any(word in line for line in worker.stderr)


def test_a_worker_from_the_command_line_runs_what_waits(start: Start, mail: Queue) -> None:
    job = mail.add({"seconds": 0}, task="nap")

    worker = start("worker", "app:mail", "--burst")

    assert worker.wait(20) == 0
    assert job.result(timeout=1).startswith("slept in ")


def test_a_terminated_worker_lets_its_runs_finish_and_exits_with_zero(start: Start, mail: Queue, app: Path) -> None:
    job, worker = mail.add({"seconds": 0.5}, task="nap"), start("worker", "app:mail")
    until((app / "napping").exists)

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert job.refresh().status == "succeeded"


def test_what_a_worker_cannot_finish_in_its_grace_waits_again_without_an_attempt(
    start: Start, mail: Queue, app: Path
) -> None:
    job, worker = mail.add({"seconds": 60}, task="nap"), start("worker", "app:mail", "--grace", "0.2")
    until((app / "napping").exists)

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert job.refresh().status == "waiting"
    assert job.attempts == 0


def test_a_second_signal_ends_a_worker_at_once(start: Start, mail: Queue, app: Path) -> None:
    job, worker = mail.add({"seconds": 60}, task="nap"), start("worker", "app:mail")
    until((app / "napping").exists)

    worker.send_signal(signal.SIGTERM)
    says(worker, "stopping")
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(10) == 0
    assert job.refresh().status == "waiting"


@pytest.mark.parametrize("target", ["app:both", "app:worker"])
def test_a_target_may_be_a_list_of_queues_or_a_worker(start: Start, mail: Queue, target: str) -> None:
    job = mail.add({"seconds": 0}, task="nap")

    worker = start("worker", target, "--burst")

    assert worker.wait(20) == 0
    assert job.refresh().status == "succeeded"


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("nosuch_module:q", "nosuch_module"),
        ("app:nothing", "nothing"),
        ("app:number", "5 is no queue"),
        ("app", "module:attribute"),
        (":mail", "module:attribute"),
    ],
)
def test_a_target_that_cannot_be_loaded_is_named_and_ends_the_worker(start: Start, target: str, word: str) -> None:
    worker = start("worker", target)

    _, errors = worker.communicate(timeout=20)

    assert worker.returncode == 1
    assert word in errors
    assert "Traceback" not in errors


def test_a_wrong_option_is_told_in_words(start: Start) -> None:
    worker = start("worker", "app:mail", "--concurrency", "0")

    _, errors = worker.communicate(timeout=20)

    assert worker.returncode == 2
    assert "concurrency takes a whole number" in errors


def test_a_failure_for_good_is_logged_with_its_traceback(start: Start, mail: Queue) -> None:
    mail.add(task="fails")

    worker = start("worker", "app:mail", "--burst")

    _, errors = worker.communicate(timeout=20)
    assert "ERROR" in errors
    assert 'raise ValueError("as asked")' in errors
