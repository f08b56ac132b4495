from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from skep.core.job import JobRecord
from skep.core.options import JobOptions
from skep.core.retry import Backoff
from skep.errors import InvalidOption, PermanentError, Retry, SkepError
from skep.worker.context import CurrentJob, current_job
from skep.worker.worker import Worker
from tests.support.served import Served, until

ONCE = JobOptions(retries=0)
AT_ONCE = JobOptions(retries=2, backoff=Backoff.none())


def test_an_async_handler_gets_its_arguments_and_its_result_is_kept(queue: Served) -> None:
    @queue.task()
    async def add(x: int, y: int) -> int:
        return x + y

    id = queue.add("add", {"x": 2, "y": 3})
    with Worker(queue):
        result = queue.result(id)

    assert result == 5
    assert queue.tally(id) == (1, 0, 0, 0)


def test_a_plain_handler_runs_in_a_thread_beside_the_loop(queue: Served) -> None:
    @queue.task()
    def where() -> str:
        return threading.current_thread().name

    id = queue.add("where")
    with Worker(queue):
        name = queue.result(id)

    assert name.startswith("skep-job-")


def test_the_handler_of_a_queue_gets_the_job_with_any_json(queue: Served) -> None:
    @queue.handler
    def echo(job: CurrentJob) -> list[Any]:
        return [job.data, job.id, job.run, job.queue, job.task]

    with Worker(queue):
        for value in (None, 0, "", [1, {"a": None}], {"é☃": 2**53}):
            id = queue.add(None, value)

            assert queue.result(id) == [value, id, 1, queue.name, None]


def test_a_job_added_to_an_idle_worker_starts_at_once(queue: Served) -> None:
    @queue.task()
    async def quick() -> None:
        pass

    with Worker(queue):
        queue.ended(queue.add("quick"))
        waited = []
        for _ in range(20):
            began = time.perf_counter()
            queue.ended(queue.add("quick"))
            waited.append(time.perf_counter() - began)

    assert sorted(waited)[10] < 0.1


def test_a_failing_job_runs_once_more_than_it_has_retries(queue: Served) -> None:
    @queue.task(options=AT_ONCE)
    async def bad() -> None:
        raise ValueError(f"run {current_job().run}")

    id = queue.add("bad")
    with Worker(queue):
        error = queue.ended(id).error

    assert error is not None
    assert (error.type, error.message, error.kind) == ("ValueError", "run 3", "error")
    assert "raise ValueError" in error.traceback
    assert queue.tally(id) == (3, 3, 0, 0)


def test_the_options_of_the_job_go_before_those_of_its_task_and_queue(queue: Served) -> None:
    queue.defaults = JobOptions(retries=1, backoff=Backoff.none())

    @queue.task()
    async def of_the_queue() -> None:
        raise ValueError

    @queue.task(options=AT_ONCE)
    async def of_the_task() -> None:
        raise ValueError

    ids = [queue.add("of_the_queue"), queue.add("of_the_task"), queue.add("of_the_task", retries=0)]
    with Worker(queue):
        for id in ids:
            queue.ended(id)

    assert [queue.look(id).known.attempts for id in ids] == [2, 3, 1]


def test_a_permanent_error_is_not_retried(queue: Served) -> None:
    @queue.task()
    def final() -> None:
        raise PermanentError("no such user")

    id = queue.add("final")
    with Worker(queue):
        error = queue.ended(id).error

    assert error is not None
    assert (error.type, error.kind) == ("PermanentError", "permanent")
    assert queue.tally(id) == (1, 1, 0, 0)


def test_data_that_does_not_fit_fails_for_good_and_names_the_parameter(queue: Served) -> None:
    @queue.task()
    async def add(x: int) -> int:
        return x

    ids = [queue.add("add", {"x": "two"}), queue.add("add", {})]
    with Worker(queue):
        errors = [queue.ended(id).error for id in ids]

    assert all(error is not None and error.kind == "permanent" and "x" in error.message for error in errors)


def test_a_result_that_is_no_json_fails_for_good_and_names_the_place(queue: Served) -> None:
    @queue.task()
    async def odd() -> object:
        return {"a": [1, object()]}

    id = queue.add("odd")
    with Worker(queue):
        error = queue.ended(id).error

    assert error is not None
    assert error.kind == "permanent"
    assert "result.a[1]" in error.message


def test_a_handler_over_its_time_is_ended_and_counted_as_a_timeout(queue: Served) -> None:
    @queue.task(options=JobOptions(retries=1, backoff=Backoff.none(), timeout=0.1))
    async def hangs() -> None:
        await asyncio.sleep(60)

    @queue.task(options=JobOptions(retries=1, backoff=Backoff.none(), timeout=0.1))
    def spins() -> None:
        while True:
            pass

    ids = [queue.add("hangs"), queue.add("spins")]
    with Worker(queue):
        errors = [queue.ended(id).error for id in ids]

    assert [error.kind for error in errors if error is not None] == ["timeout", "timeout"]
    assert [error.type for error in errors if error is not None] == ["JobTimeout", "JobTimeout"]
    assert [queue.tally(id) for id in ids] == [(2, 2, 0, 2), (2, 2, 0, 2)]


def test_progress_begins_the_timeout_anew(queue: Served) -> None:
    @queue.task(options=JobOptions(retries=0, timeout=0.4))
    async def climbs() -> str:
        for step in range(4):
            await asyncio.sleep(0.2)
            current_job().report_progress(step)
        return "top"

    id = queue.add("climbs")
    with Worker(queue):
        assert queue.result(id) == "top"

    assert queue.look(id).progress == b"3"


def test_a_handler_chooses_when_it_runs_again(queue: Served) -> None:
    class Later(Retry):
        pass

    @queue.task(options=ONCE)
    def busy() -> int:
        if current_job().failures == 0:
            raise Later(at=time.time() + 60) from ZeroDivisionError("by zero")
        return current_job().failures

    id = queue.add("busy", retries=1)
    with Worker(queue):
        until(lambda: queue.status(id) == "retrying")
        record = queue.look(id)

    assert record.error is not None
    assert record.error.type == "ZeroDivisionError"
    assert 55_000 < record.head.due - time.time() * 1000 < 61_000


def test_a_job_may_be_passed_back_without_using_anything_up(queue: Served) -> None:
    @queue.task(options=ONCE)
    async def busy() -> int:
        if current_job().run < 4:
            raise Retry(after=0.01, count=False)
        return current_job().run

    id = queue.add("busy")
    with Worker(queue):
        assert queue.result(id) == 4

    assert queue.tally(id) == (1, 0, 0, 0)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, BaseException, GeneratorExit])
def test_whatever_a_handler_raises_ends_its_own_job_only(queue: Served, kind: type[BaseException]) -> None:
    @queue.task(options=ONCE)
    async def leaves() -> None:
        raise kind

    @queue.task(options=ONCE)
    def leaves_its_thread() -> None:
        raise kind

    @queue.task()
    async def fine() -> str:
        return "fine"

    ids = [queue.add("leaves"), queue.add("leaves_its_thread")]
    with Worker(queue):
        errors = [queue.ended(id).error for id in ids]

        assert queue.result(queue.add("fine")) == "fine"

    assert [error.type for error in errors if error is not None] == [kind.__name__] * 2


def test_a_job_of_an_unknown_task_is_set_aside_until_a_worker_knows_it(queue: Served) -> None:
    @queue.task()
    async def known() -> None:
        pass

    id = queue.add("other")
    with Worker(queue):
        queue.ended(queue.add("known"))

        assert queue.look(id).reason == "unknown task"

    @queue.task()
    async def other() -> str:
        return "at last"

    with Worker(queue):
        assert queue.result(id) == "at last"


def test_a_task_that_is_declared_late_or_anew_is_known_at_once(queue: Served) -> None:
    with Worker(queue):

        @queue.task("late")
        async def first() -> str:
            return "first"

        before = queue.result(queue.add("late"))

        @queue.task("late")
        def second() -> str:
            return "second"

        assert (before, queue.result(queue.add("late"))) == ("first", "second")


def test_what_a_failure_handler_is_told(queue: Served) -> None:
    told: list[tuple[str, Any, str, str]] = []

    @queue.task(options=ONCE)
    async def bad(a: int) -> None:
        raise ValueError(f"no {a}")

    @queue.on_failure
    def hears(job: JobRecord, error: Any) -> None:
        told.append((job.id, job.head.data, error.message, current_job().id[:8]))

    id = queue.add("bad", {"a": 7})
    with Worker(queue):
        until(lambda: told)

    assert told == [(id, b'{"a":7}', "no 7", "failure-")]


def test_log_lines_and_progress_are_there_when_the_job_has_ended(queue: Served) -> None:
    @queue.task(options=JobOptions(max_logs=3))
    def talks() -> None:
        for number in range(10):
            current_job().log(f"line {number}", level="warning")
        current_job().report_progress({"at": 60}, message="nearly there")

    id = queue.add("talks")
    with Worker(queue):
        queue.ended(id)
        record, lines = queue.look(id), queue.lines(id)

    assert record.progress == b'{"at":60}'
    assert lines == [("warning", "line 8"), ("warning", "line 9"), ("info", "nearly there")]


def test_a_series_by_a_cron_line_goes_on_at_its_next_due_time(queue: Served) -> None:
    @queue.task()
    async def tick() -> None:
        pass

    queue.add("tick", id="nightly", cron="0 3 * * *", tz="Europe/Paris", run_at=time.time() - 1)
    with Worker(queue):
        until(lambda: queue.look("nightly").known.previous is not None)

    record = queue.look("nightly")
    assert record.status == "scheduled"
    assert (record.head.due // 3_600_000) % 24 in (1, 2)


def test_a_task_runs_at_most_as_often_at_once_as_it_says(queue: Served) -> None:
    running: dict[str, int] = {"wide": 0, "narrow": 0}
    peak = dict(running)

    async def one(kind: str) -> None:
        running[kind] += 1
        peak[kind] = max(peak[kind], running[kind])
        await asyncio.sleep(0.02)
        running[kind] -= 1

    @queue.task()
    async def wide() -> None:
        await one("wide")

    @queue.task(concurrency=2)
    async def narrow() -> None:
        await one("narrow")

    queue.add_many([None] * 20, "wide")
    queue.add_many([None] * 8, "narrow")
    with Worker(queue, concurrency=5):
        until(lambda: queue.counts().succeeded == 28)

    assert peak == {"wide": 5, "narrow": 2}


def test_a_worker_on_the_running_loop_is_ready_on_entry_and_drained_on_exit(queue: Served) -> None:
    @queue.task()
    async def slow() -> str:
        await asyncio.sleep(0.2)
        return "done"

    async def beside() -> None:
        async with Worker(queue):
            await asyncio.to_thread(until, lambda: queue.counts().active == 1)

    id = queue.add("slow")
    asyncio.run(beside())

    assert queue.look(id).result == b'"done"'
    assert queue.counts().active == 0


def test_serving_ends_when_it_is_asked_to_stop(queue: Served) -> None:
    @queue.task()
    async def ends_it() -> None:
        worker.stop()

    worker = Worker(queue)
    id = queue.add("ends_it")
    asyncio.run(worker.serve())

    assert queue.status(id) == "succeeded"


def test_a_burst_ends_when_nothing_waits_runs_or_is_to_be_retried(queue: Served) -> None:
    @queue.task(options=JobOptions(retries=1, backoff=Backoff.fixed(0.3)))
    async def flaky() -> str:
        if current_job().failures == 0:
            raise ValueError
        return "second"

    id, later = queue.add("flaky"), queue.add("flaky", delay=60)
    asyncio.run(Worker(queue, burst=True).serve())

    assert queue.look(id).result == b'"second"'
    assert queue.status(later) == "scheduled"


def test_a_worker_can_be_used_once_more_but_not_twice_at_once(queue: Served) -> None:
    @queue.task()
    async def quick() -> None:
        pass

    worker = Worker(queue)
    for _ in range(2):
        with worker:
            queue.ended(queue.add("quick"))

            with pytest.raises(InvalidOption), worker:
                pass


def test_current_job_outside_of_a_job_says_what_it_is_for() -> None:
    with pytest.raises(SkepError, match="no job runs here"):
        current_job()


@pytest.mark.parametrize(
    ("option", "value"),
    [("concurrency", 0), ("concurrency", "many"), ("executor", "fibers"), ("lease", 0.5), ("grace", -1)],
)
def test_wrong_options_of_a_worker_are_refused(queue: Served, option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        Worker(queue, **{option: value})


def test_a_worker_without_a_queue_is_refused() -> None:
    with pytest.raises(InvalidOption, match="at least one queue"):
        Worker()


def test_a_task_says_how_long_its_jobs_are_kept_where_they_do_not_say_it_themselves(queue: Served) -> None:
    @queue.task(options=JobOptions(keep=False))
    async def gone() -> None: ...

    dropped, kept = queue.add("gone"), queue.add("gone", keep=True)
    with Worker(queue):
        until(lambda: queue.status(kept) == "succeeded" and not queue.known(dropped))

    assert queue.status(kept) == "succeeded"
