from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skep import lifecycle
from skep.core.job import JobError
from skep.errors import InvalidOption
from skep.worker.executors.source import NotImportable
from skep.worker.middleware import Next
from skep.worker.worker import Worker
from tests.support.served import Served, until
from tests.worker import process_tasks


@pytest.fixture
def served(queue: Served) -> Served:
    queue.registry = process_tasks.registry
    return queue


def is_running(pid: int) -> bool:
    """Whether it runs: an end that nobody has collected yet is an end."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def error_of(served: Served, id: str) -> JobError:
    error = served.ended(id).error
    assert error is not None
    return error


def number_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def cancel(served: Served, id: str) -> None:
    served.send(lifecycle.cancel(served.keys, [(id, None)]))


def test_a_warm_child_runs_one_job_after_the_other_outside_of_its_worker(served: Served) -> None:
    with Worker(served, concurrency=1):
        where = [served.result(served.add(task)) for task in ("pid", "pid_of_async", "pid")]

    assert len(set(where)) == 1
    assert where[0] != os.getpid()
    assert not is_running(where[0])


def test_a_coroutine_in_a_child_knows_its_job(served: Served) -> None:
    with Worker(served):
        id = served.add("pid_of_async")
        served.result(id)

    assert served.lines(id) == [("info", "from a coroutine")]


def test_the_executor_of_the_worker_is_that_of_tasks_without_one(served: Served) -> None:
    with Worker(served, executor="process"):
        in_child = served.result(served.add("pid_where_the_worker_says"))
    with Worker(served):
        in_thread = served.result(served.add("pid_where_the_worker_says"))

    assert in_child != os.getpid()
    assert in_thread == os.getpid()


def test_the_lifespan_of_the_queue_is_made_in_each_child(served: Served) -> None:
    with Worker(served):
        assert served.result(served.add("state")) is True


def test_progress_and_log_lines_leave_a_child_in_order_and_before_its_end(served: Served) -> None:
    with Worker(served):
        id = served.add("tells")
        result = served.result(id)

    assert result == id
    assert served.look(id).progress == b"99"
    assert [text for _, text in served.lines(id)] == [f"line {number}" for number in range(100)]


def test_what_can_be_neither_pickled_nor_shown_fails_its_job_only(served: Served) -> None:
    with Worker(served, concurrency=1):
        before = served.result(served.add("pid"))
        error = error_of(served, served.add("odd"))
        after = served.result(served.add("pid"))

    assert (error.type, error.kind) == ("Odd", "error")
    assert "in odd" in error.traceback
    assert before == after


def test_an_error_that_is_final_is_not_retried_from_a_child_either(served: Served) -> None:
    with Worker(served):
        id = served.add("final")
        error = error_of(served, id)

    assert (error.kind, error.message) == ("permanent", "enough")
    assert served.tally(id) == (1, 1, 0, 0)


@pytest.mark.parametrize(("task", "detail"), [("killed", ("signal", "SIGKILL")), ("exits", ("exit_code", 7))])
def test_a_child_that_dies_stalls_its_own_job_and_tells_why(
    served: Served, tmp_path: Path, task: str, detail: tuple[str, Any]
) -> None:
    with Worker(served, concurrency=2, grace=0):
        other = served.add("spins", {"path": str(tmp_path / "pid")})
        number_in(tmp_path / "pid")
        id = served.add(task, max_stalls=0)
        error = error_of(served, id)
        status = served.status(other)

    assert status == "active"
    assert error.kind == "stall"
    assert error.details is not None
    assert error.details[detail[0]] == detail[1]
    assert error.details["peak_memory"] > 1 << 20
    assert error.details["out_of_memory"] is False
    assert served.tally(id) == (1, 0, 1, 0)


def test_a_child_over_its_time_is_killed_in_native_code_and_replaced_at_once(served: Served, tmp_path: Path) -> None:
    with Worker(served, concurrency=1):
        id = served.add("spins_for_a_while", {"path": str(tmp_path / "pid")})
        error, child = error_of(served, id), number_in(tmp_path / "pid")
        after = served.result(served.add("pid"))

    assert error.kind == "timeout"
    assert served.tally(id) == (1, 1, 0, 1)
    assert not is_running(child)
    assert after != child


def test_a_cancelled_run_is_killed_when_its_callbacks_are_done(served: Served, tmp_path: Path) -> None:
    with Worker(served, lease=2):
        id = served.add("cleans_up", {"path": str(tmp_path)})
        child = number_in(tmp_path / "began")
        cancel(served, id)
        ended = served.ended(id)

    assert ended.status.value == "cancelled"
    assert (tmp_path / "cleaned").exists()
    assert not is_running(child)


def test_a_run_in_a_child_sees_that_it_is_cancelled_and_may_end_by_itself(served: Served, tmp_path: Path) -> None:
    with Worker(served, lease=2):
        id = served.add("looks", {"path": str(tmp_path)})
        number_in(tmp_path / "began")
        cancel(served, id)
        until((tmp_path / "seen").exists)
        status = served.ended(id).status.value

    assert status in ("cancelled", "succeeded")


def test_a_run_whose_lease_is_lost_is_killed_and_runs_again(served: Served, tmp_path: Path) -> None:
    with Worker(served, lease=2, grace=0):
        id = served.add("spins", {"path": str(tmp_path / "pid")})
        first = number_in(tmp_path / "pid")
        lease = served.look(id).lease
        assert lease is not None
        served.send(lifecycle.leave(served.keys, lease.worker, died=True))
        until(lambda: not is_running(first))
        until(lambda: number_in(tmp_path / "pid") != first)

    assert served.tally(id)[2] == 1


def test_a_stopping_worker_kills_what_runs_and_hands_it_back(served: Served, tmp_path: Path) -> None:
    with Worker(served, grace=0):
        id = served.add("spins", {"path": str(tmp_path / "pid")})
        child = number_in(tmp_path / "pid")

    assert served.status(id) == "waiting"
    assert served.tally(id) == (0, 0, 0, 0)
    assert not is_running(child)


@pytest.mark.parametrize("limits", [{"max_jobs_per_child": 1}, {"max_rss": 1}])
def test_a_child_past_its_limits_is_replaced_between_two_jobs(served: Served, limits: dict[str, int]) -> None:
    with Worker(served, concurrency=1, **limits):  # type: ignore[arg-type]
        where = [served.result(served.add("pid")) for _ in range(3)]

    assert len(set(where)) == 3


def test_middleware_stands_around_a_run_in_a_child(served: Served) -> None:
    seen: list[Any] = []

    async def around(job: Any, call_next: Next) -> Any:
        try:
            seen.append(await call_next())
        except Exception as error:
            seen.append(error)
            raise
        return seen[-1]

    with Worker(served, middleware=[around]):
        where = served.result(served.add("pid"))
        error = error_of(served, served.add("odd"))

    assert seen[0] == where
    assert "Odd" in str(seen[1])
    assert error.type == "Odd"


def test_a_task_inside_a_function_is_refused_when_the_worker_starts(queue: Served) -> None:
    @queue.task(executor="process")
    def inside() -> None: ...

    with pytest.raises(NotImportable, match="top level of its module"), Worker(queue):
        pass


def test_a_lifespan_that_children_cannot_find_is_refused_when_the_worker_starts(served: Served) -> None:
    worker = Worker(served)

    @worker.lifespan
    def inside() -> Iterator[None]:
        yield

    with pytest.raises(NotImportable, match="top level of its module"), worker:
        pass


def test_a_limit_that_is_none_is_refused_in_words(served: Served) -> None:
    with pytest.raises(InvalidOption, match="max_jobs_per_child takes a whole number"):
        Worker(served, max_jobs_per_child=0)


# Workers that are programs of their own.

PROGRAM = """
import os, pathlib, skep
q = skep.Queue("programs")

@q.task(executor="process", retries=0)
def spins(path: str) -> int:
    pathlib.Path(path).write_text(str(os.getpid()))
    return sum(range(10**12))

@q.task(executor="process", retries=0)
def pid() -> int:
    return os.getpid()

if __name__ == "__main__":
    skep.Worker(q, lease=2).run()
"""

Begin = Callable[[list[str]], "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(tmp_path: Path, skep_url: str) -> Iterator[Begin]:
    """Starts a worker in the folder of the program. What is left at the end is killed."""
    (tmp_path / "program.py").write_text(PROGRAM)
    started: list[subprocess.Popen[bytes]] = []

    def go(words: list[str]) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen([sys.executable, *words], cwd=tmp_path, env=os.environ | {"SKEP_URL": skep_url})
        )
        return started[-1]

    yield go
    for each in started:
        with each:
            each.kill()


def test_a_program_that_starts_its_worker_when_it_is_imported_is_told_what_to_do(
    begin: Begin, skep_url: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace('if __name__ == "__main__":', "if True:"))
    served = Served("programs", skep_url)
    begin(["program.py"])

    error = error_of(served, served.add("pid"))

    assert error.kind == "permanent"
    assert '`if __name__ == "__main__":`' in error.message
    served.store.close()


@pytest.mark.parametrize("words", [["program.py"], ["-m", "skep.cli.main", "worker", "program:q"]])
def test_tasks_of_a_program_and_of_a_target_run_in_children(begin: Begin, skep_url: str, words: list[str]) -> None:
    served = Served("programs", skep_url)
    worker = begin(words)

    where = served.result(served.add("pid"))

    assert where != worker.pid
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert not is_running(where)
    served.store.close()


def test_children_in_native_code_end_with_a_worker_that_is_killed(begin: Begin, skep_url: str, tmp_path: Path) -> None:
    served = Served("programs", skep_url)
    worker = begin(["program.py"])
    id = served.add("spins", {"path": str(tmp_path / "pid")})
    child = number_in(tmp_path / "pid")

    worker.kill()
    worker.wait()

    until(lambda: not is_running(child), 1)
    assert served.status(id) == "active"
    served.store.close()
