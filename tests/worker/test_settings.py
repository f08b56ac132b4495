from __future__ import annotations

import gc

import pytest

from skep import lifecycle, views
from skep.core.options import JobOptions
from skep.core.retry import Backoff
from skep.worker import runtime, upkeep
from skep.worker.litter import OBJECTS, rare_looks
from skep.worker.repertoire import terms_of
from skep.worker.worker import Worker
from tests.support.served import Served, until


@pytest.fixture
def failing(queue: Served) -> Served:
    """Tasks that always fail: `plain` says nothing of retries, `stubborn` says two."""

    @queue.task()
    async def plain() -> None:
        raise ValueError("always")

    @queue.task(options=JobOptions(retries=2, backoff=Backoff.none()))
    async def stubborn() -> None:
        raise ValueError("always")

    return queue


def failures(queue: Served, id: str) -> int:
    return queue.ended(id).known.failures


def test_runs_go_by_the_settings_of_their_queue_unless_task_or_job_know_better(failing: Served) -> None:
    failing.defaults = JobOptions(retries=7, backoff=Backoff.none())
    failing.send(lifecycle.configure(failing.keys, {"retries": 1}))

    with Worker(failing):
        plain, stubborn = failing.add("plain"), failing.add("stubborn")
        own = failing.add("plain", retries=3)

        assert failures(failing, plain) == 2
        assert failures(failing, stubborn) == 3
        assert failures(failing, own) == 4


def test_every_setting_of_runs_that_a_server_has_is_read() -> None:
    backoff = Backoff.fixed(3).to_json()
    kept = {"retries": "4", "timeout": "1500", "max_logs": "9", "backoff": backoff, "seq": "12", "max_stalls": "2"}

    terms = terms_of(kept)

    assert terms == {"retries": 4, "timeout": 1500, "max_logs": 9, "backoff": backoff}


def test_a_worker_that_runs_learns_of_settings_that_change(failing: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "SETTINGS_REST", 0.02)
    failing.send(lifecycle.configure(failing.keys, {"backoff": Backoff.none().to_json(), "retries": 1}))

    with Worker(failing):
        before = failures(failing, failing.add("plain"))
        failing.send(lifecycle.configure(failing.keys, {"retries": 0}))
        until(lambda: failures(failing, failing.add("plain")) == 1)

    assert before == 2


def test_settings_that_cannot_be_read_leave_runs_to_what_was_known(
    failing: Served, caplog: pytest.LogCaptureFixture
) -> None:
    failing.defaults = JobOptions(retries=0)
    failing.send(lifecycle.configure(failing.keys, {"retries": "many"}))

    with Worker(failing):
        assert failures(failing, failing.add("plain")) == 1

    assert "settings of this queue cannot be read" in caplog.text


def test_upkeep_goes_on_while_more_is_left_to_do(queue: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MOST_SLICES", 1)

    @queue.task()
    async def go() -> None: ...

    queue.send(lifecycle.pause(queue.keys, wanted=True))
    over = queue.send(views.now(queue.keys)) + 300
    queue.add_many([None] * 900, "go", expires=over / 1000)
    until(lambda: queue.send(views.now(queue.keys)) > over)
    # Neither its renewals nor its next pass come within the time.
    with Worker(queue, lease=60):
        until(lambda: queue.counts().cancelled == 900, seconds=3)


def test_garbage_is_looked_for_less_often_while_a_process_runs_jobs() -> None:
    before = gc.get_threshold()

    with rare_looks():
        during = gc.get_threshold()

    assert during[0] == OBJECTS > before[0]
    assert gc.get_threshold() == before
