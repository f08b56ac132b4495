from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skep import Queue, Worker
from tests.support.served import until


@pytest.fixture
def mail(skep_url: str) -> Iterator[Queue]:
    with Queue("mail", skep_url) as queue:
        yield queue


def declared(url_of: Queue, **schedule: Any) -> tuple[Queue, Callable[[], None]]:
    """The same queue in another release of its program, with a task of this schedule."""
    queue = Queue(url_of.name, url_of.connection)

    @queue.task(**schedule)
    def report() -> None: ...

    return queue, report


def test_a_task_with_a_cron_line_is_a_series_once_a_worker_has_started(mail: Queue) -> None:
    queue, _ = declared(mail, cron="0 3 * * *", tz="Europe/Paris")

    with Worker(queue):
        job = mail.get("cron:report")

    assert job is not None
    assert job.status == "scheduled"
    assert job.task == "report"
    assert job.run_at.minute == 0
    assert job.run_at.timestamp() > time.time()


def test_a_worker_that_finds_its_schedule_leaves_it_alone(mail: Queue) -> None:
    for _ in range(2):
        with Worker(declared(mail, cron="0 3 * * *")[0]):
            pass

    types = [event.type for event in until(lambda: events_of(mail))]
    assert types.count("added") == 1
    assert "updated" not in types


def test_a_schedule_that_differs_is_written_anew(mail: Queue) -> None:
    with Worker(declared(mail, cron="0 3 * * *")[0]):
        pass
    with Worker(declared(mail, cron="30 4 * * *")[0]):
        job = mail.get("cron:report")

    assert job is not None
    assert job.run_at.minute == 30


def test_a_run_that_is_owed_stays_owed_when_its_schedule_changes(mail: Queue) -> None:
    with Worker(declared(mail, cron="0 3 * * *")[0]):
        pass
    mail.promote("cron:report")
    mail.pause()
    with Worker(declared(mail, cron="30 4 * * *")[0]):
        job = mail.get("cron:report")

    assert job is not None
    assert job.status == "waiting"


def test_a_task_that_runs_every_so_often_begins_at_once_and_goes_on(mail: Queue) -> None:
    queue = Queue(mail.name, mail.connection)
    ran: list[int] = []

    @queue.task(every=0.05)
    async def tick() -> None:
        ran.append(1)

    with Worker(queue):
        until(lambda: len(ran) >= 3)

    assert mail.cancel("cron:tick")


def events_of(queue: Queue) -> list[Any]:
    from skep import views
    from skep.core.events import read_entry
    from skep.store.sync import Store

    store = Store(queue.connection)
    feed = store.send(views.feed(queue.keys, after=0))
    store.close()
    return [event for id, fields in feed.entries for event in read_entry(id, fields)]
