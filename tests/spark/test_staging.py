"""Writes without Spark: staged by tasks, decided once, moved by whoever comes by."""

from __future__ import annotations

import copy
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StructField, StructType

from skep import Queue, lifecycle, views
from skep.core.keys import Keys
from skep.errors import InvalidOption, StagingGone
from skep.spark import staging, written
from skep.spark.options import WriteOptions
from skep.spark.staging import BadRows, Staged, Stager, WritePlan, decide, move_all
from skep.spark.writer import RowsWriter
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server
from tests.support.engine import Engine
from tests.support.proxy import Proxy

PLAN = WritePlan(queue="mail", write="w1", task="welcome")
KEYS = Keys("mail")

DIE_AFTER_THE_DECISION = """
import os, signal, sys
from skep.spark import staging
from skep.spark.at import store_at
from skep.spark.options import WriteOptions

store = store_at(sys.argv[1])
plan = staging.WritePlan(queue="mail", write="w1")
staging.decide(store, plan, [staging.Staged(sys.argv[2], int(sys.argv[3]))])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def engine(skep_server: Server, skep_url: str) -> Iterator[Engine]:
    engine = Engine(skep_server.path, "mail")
    yield engine
    engine.close()


def staged(store: Store, rows: int = 3, plan: WritePlan = PLAN, first: int = 0) -> Staged:
    """One task's rows."""
    stager = Stager(store, plan)
    stager.add(pa.record_batch({"user_id": pa.array(range(first, first + rows))}))
    return stager.finish()


def users(mail: Queue) -> list[int]:
    return sorted(job.data["user_id"] for job in mail.jobs())


def test_nothing_shows_before_the_decision_and_everything_after(store: Store, mail: Queue) -> None:
    tasks = [staged(store, 1200), staged(store, 700, first=1200)]
    before = mail.counts().total

    decided = decide(store, PLAN, tasks)
    told = move_all(store, PLAN)

    assert before == 0
    assert decided
    assert (told.rows, told.added, told.done) == (1900, 1900, True)
    assert users(mail) == list(range(1900))
    assert {(job.task, job.record.head.options["write"]) for job in mail.jobs()} == {("welcome", "w1")}


def test_a_task_that_was_repeated_counts_once(store: Store, mail: Queue) -> None:
    staged(store)
    again = staged(store)

    decide(store, PLAN, [again])
    move_all(store, PLAN)

    assert users(mail) == [0, 1, 2]


def test_a_commit_that_is_said_again_changes_nothing(store: Store, mail: Queue) -> None:
    tasks = [staged(store)]

    said = [decide(store, PLAN, tasks), decide(store, PLAN, tasks), decide(store, PLAN, [staged(store)])]
    move_all(store, PLAN)

    assert said == [True, False, False]
    assert users(mail) == [0, 1, 2]


def test_a_write_without_rows_is_remembered_too(store: Store) -> None:
    decide(store, PLAN, [Staged("none", 0)])

    told = move_all(store, PLAN)

    assert (told.rows, told.done) == (0, True)
    assert not decide(store, PLAN, [staged(store)])


def test_a_commit_killed_after_its_decision_is_finished_by_another_process(
    store: Store, mail: Queue, skep_url: str
) -> None:
    task = staged(store, 1100)
    ran = subprocess.run(
        [sys.executable, "-c", DIE_AFTER_THE_DECISION, skep_url, task.token, str(task.rows)],
        capture_output=True,
        timeout=30,
        check=False,
    )
    left = store.send(views.written(KEYS, "w1"))

    told = move_all(store, PLAN)

    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert left is not None
    assert not left.done
    assert (told.added, told.done) == (1100, True)
    assert users(mail) == list(range(1100))


def test_workers_finish_a_decided_write_in_passing(store: Store, mail: Queue) -> None:
    decide(store, PLAN, [staged(store, 1100)])

    for _ in range(3):
        store.send(lifecycle.upkeep(KEYS))

    assert users(mail) == list(range(1100))


def test_rows_and_decision_count_once_when_replies_are_lost(skep_server: Server, mail: Queue, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "proxy", skep_server.path)
    through = Store(Connection(proxy.url))
    proxy.then("lose reply", "pass", "lose reply", "pass", "lose reply")

    task = staged(through, 900)
    decided = decide(through, PLAN, [task])
    told = move_all(through, PLAN)
    through.close()
    proxy.close()

    assert decided
    assert (task.rows, told.added) == (900, 900)
    assert users(mail) == list(range(900))


def test_staged_rows_that_nobody_decides_go_by_themselves(engine: Engine) -> None:
    engine.send(lifecycle.stage_each(KEYS, "token", ttl=1000, drafts=[lifecycle.Draft(id="a", data=b"1")]))
    engine.now += 1001

    engine.upkeep()

    assert engine.size("staged") == 0
    assert engine.get("queue", "staged_rows") == b"0"


def test_a_write_of_which_a_part_has_gone_is_refused_whole(engine: Engine, store: Store) -> None:
    for id in ("a", "b"):
        engine.send(lifecycle.stage_each(KEYS, "token", ttl=1000, drafts=[lifecycle.Draft(id=id, data=b"1")]))
    engine.now += 1001
    engine.send(lifecycle.upkeep(KEYS))
    assert engine.size("staged") > 0

    with pytest.raises(StagingGone, match="the staged rows token are gone"):
        decide(store, PLAN, [Staged("token", 2)])


def test_a_batch_of_a_stream_is_decided_once_and_none_before_it(store: Store, mail: Queue) -> None:
    def batch(number: int) -> WritePlan:
        return WritePlan(queue="mail", write=f"q/{number}", stream=("q", number))

    said = [decide(store, batch(number), [staged(store, 2)]) for number in (0, 1, 1, 0, 2)]
    for number in range(3):
        move_all(store, batch(number))

    assert said == [True, True, False, False, True]
    assert mail.counts().waiting == 6


def test_a_bad_row_refuses_the_write_and_is_named(store: Store) -> None:
    stager = Stager(store, PLAN)
    stager.add(pa.record_batch({"score": pa.array([1.0, float("nan")])}))

    with pytest.raises(BadRows, match=r"1 rows cannot be jobs.*data\.score: nan is not a number"):
        staging.check_bad([stager.finish()])


def test_a_commit_tells_the_id_of_its_write_and_what_became_of_the_rows(
    skep_url: str, mail: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    options = WriteOptions.parse({"queue": "mail", "url": skep_url, "badRows": "skip"})
    writer = RowsWriter(options, StructType([StructField("score", DoubleType())]))
    batch = pa.record_batch({"score": pa.array([1.5, float("nan")])})

    for _ in range(2):
        task, driver = copy.deepcopy(writer), copy.deepcopy(writer)
        driver.commit([task.write(iter([batch]))])

    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"skep: write '\w{16}' to queue 'mail': 1 added, 0 updated, 0 ignored, 1 rows that cannot be jobs left out",
        first,
    )
    assert "was committed before and is skipped" in second
    assert mail.counts().total == 1


def test_rows_with_ids_update_the_jobs_that_have_them(store: Store, mail: Queue) -> None:
    mail.add({"user_id": 0}, id="b")
    stager = Stager(store, PLAN)
    stager.add(
        pa.record_batch(
            {
                "user_id": pa.array([1, 2]),
                "skep_id": pa.array(["a", "b"]),
                "skep_on_conflict": pa.array(["update", "update"]),
            }
        )
    )

    decide(store, PLAN, [stager.finish()])
    told = move_all(store, PLAN)

    assert (told.added, told.updated) == (1, 1)
    assert users(mail) == [1, 2]


def test_what_became_of_a_write_can_be_asked_by_its_id(store: Store, skep_url: str) -> None:
    decide(store, PLAN, [staged(store)])
    move_all(store, PLAN)

    told = written("w1", queue="mail")

    assert told is not None
    assert (told.added, told.updated, told.blocked, told.ignored) == (3, 0, 0, 0)
    assert written("another", queue="mail") is None


def test_without_the_name_of_a_queue_the_question_is_refused_with_an_example(skep_url: str) -> None:
    with pytest.raises(InvalidOption, match="such as 'mail'"):
        written("w1")
