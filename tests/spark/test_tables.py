from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from skep.spark import jobs, metrics, runs
from skep.spark.schema import EVENT, JOB, METRIC, RUN

pytestmark = pytest.mark.spark

NOON = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)
RUN_ENDS = ("succeeded", "retrying", "failed", "cancelled", "stalled", "returned")


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def an_event(type: str, **columns: Any) -> dict[str, Any]:
    """An event of the first run of a job that was added at noon."""
    known = {
        "seq": 7,
        "at": after(3.5),
        "queue": "mail",
        "job": "j",
        "life": 4,
        "task": "welcome",
        "by": "w1",
    }
    return dict.fromkeys(EVENT.names) | known | {"created": NOON, "due": NOON, "type": type} | columns


def a_run_end(type: str, **columns: Any) -> dict[str, Any]:
    return an_event(type, **{"run": 1, "worker": "w1", "began": after(1), "started": after(1)} | columns)


def table(spark: SparkSession, *events: dict[str, Any]) -> DataFrame:
    return spark.createDataFrame(list(events), EVENT)


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def columns(schema: StructType) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]


@pytest.mark.parametrize(("make", "schema"), [(runs, RUN), (jobs, JOB)], ids=["runs", "jobs"])
def test_the_table_has_the_pinned_columns_without_any_shuffle(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[DataFrame], DataFrame],
    schema: StructType,
) -> None:
    made = make(table(spark, an_event("added")))

    made.explain("extended")

    plan = capsys.readouterr().out
    assert columns(made.schema) == columns(schema)
    assert "Physical Plan" in plan
    assert not any(word in plan for word in ("Exchange", "Join", "Aggregate", "Sort", "Window"))


def test_a_run_is_one_row_with_its_story_and_its_times(spark: SparkSession) -> None:
    ended = a_run_end("retrying", due=after(0.25), failures=1, attempts=1, error_type="OSError", write="w-1")

    (run,) = rows(runs(table(spark, ended)))

    told = (
        "queue",
        "job",
        "life",
        "run",
        "seq",
        "task",
        "worker",
        "outcome",
        "failures",
        "error_type",
        "write",
    )
    assert [run[name] for name in told] == [
        "mail",
        "j",
        4,
        1,
        7,
        "welcome",
        "w1",
        "retrying",
        1,
        "OSError",
        "w-1",
    ]
    assert (run["waited"], run["ran"]) == (0.75, 2.5)
    assert run["ended"].astimezone(UTC) == after(3.5)


def test_every_way_in_which_a_run_ends_makes_a_row_and_nothing_else_does(spark: SparkSession) -> None:
    others = ("added", "started", "progress", "merged", "removed", "paused", "counted")
    events = [a_run_end(type) for type in (*RUN_ENDS, *others)]

    outcomes = [run["outcome"] for run in rows(runs(table(spark, *events)))]

    assert sorted(outcomes) == sorted(RUN_ENDS)


@pytest.mark.parametrize("no_run", [{"run": 0}, {"run": None}, {"started": None}])
def test_a_job_that_is_cancelled_while_it_waits_ends_no_run(spark: SparkSession, no_run: dict[str, None]) -> None:
    cancelled = table(spark, a_run_end("cancelled", **no_run))

    made = rows(runs(cancelled))

    assert not made
    assert [job["status"] for job in rows(jobs(cancelled))] == ["cancelled"]


def test_a_wait_begins_when_the_job_was_there_and_due(spark: SparkSession) -> None:
    delayed = a_run_end("succeeded", due=after(0.9), seq=1)
    overdue = a_run_end("succeeded", due=after(-60), seq=2)
    without_time = a_run_end("succeeded", due=None, seq=3)

    made = runs(table(spark, delayed, overdue, without_time)).orderBy("seq")

    assert [round(run["waited"], 6) for run in rows(made)] == [0.1, 1.0, 1.0]


def test_the_day_is_that_of_utc_whatever_the_zone_of_the_session(spark: SparkSession) -> None:
    tokyo = spark.newSession()
    tokyo.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    before_midnight = datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
    ends = [a_run_end("succeeded", at=before_midnight + timedelta(microseconds=more)) for more in (0, 1)]

    days = [run["day"] for run in rows(runs(table(tokyo, *ends)))]

    assert days == [date(2024, 2, 29), date(2024, 3, 1)]


def test_every_way_in_which_a_life_ends_makes_a_row_and_nothing_else_does(spark: SparkSession) -> None:
    ends = ("succeeded", "failed", "cancelled", "merged")
    events = [a_run_end(type) for type in (*ends, "retrying", "stalled", "returned", "added", "dropped", "redacted")]

    statuses = [job["status"] for job in rows(jobs(table(spark, *events)))]

    assert sorted(statuses) == sorted(ends)


def test_a_removed_job_ended_then_only_if_it_was_unfinished(spark: SparkSession) -> None:
    before = ("waiting", "blocked", "held", "succeeded", "failed", "cancelled")
    events = [an_event("removed", job=status, status=status) for status in before]

    ended = rows(jobs(table(spark, *events)))

    assert sorted(job["job"] for job in ended) == ["blocked", "held", "waiting"]
    assert {job["status"] for job in ended} == {"removed"}


def test_a_job_tells_of_its_first_start_and_of_its_last_run(spark: SparkSession) -> None:
    third_run = a_run_end("succeeded", run=3, started=after(3), due=after(2.5), next_run=after(60), result="1")

    (job,) = rows(jobs(table(spark, third_run)))

    assert (job["waited"], job["ran"], job["result"]) == (0.5, 0.5, "1")
    assert [job[name].astimezone(UTC) for name in ("began", "started", "next_run")] == [
        after(1),
        after(3),
        after(60),
    ]


def test_a_life_that_never_ran_has_no_times_of_a_run(spark: SparkSession) -> None:
    cancelled = an_event("cancelled", reason="on request")

    (job,) = rows(jobs(table(spark, cancelled)))

    assert (job["waited"], job["ran"], job["started"], job["reason"]) == (None, None, None, "on request")


def test_metrics_count_runs_and_give_exact_quantiles_of_their_times(spark: SparkSession) -> None:
    ends = [a_run_end("succeeded", started=after(tenths / 10), at=after(20)) for tenths in range(1, 102)]

    (metric,) = rows(metrics(runs(table(spark, *ends))))

    told = (metric["queue"], metric["task"], metric["runs"], metric["succeeded"])
    assert told == ("mail", "welcome", 101, 101)
    assert metric["minute"].astimezone(UTC) == NOON
    assert [round(metric[f"waited_p{part}"], 6) for part in (50, 95, 99)] == [5.1, 9.6, 10.0]
    assert [round(metric[f"ran_p{part}"], 6) for part in (50, 95, 99)] == [14.9, 19.4, 19.8]


def test_metrics_have_the_pinned_columns_and_take_one_shuffle(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    made = metrics(runs(table(spark, an_event("added"))))

    made.explain()

    assert columns(made.schema) == columns(METRIC)
    assert capsys.readouterr().out.count("Exchange") == 1


def test_metrics_keep_queues_tasks_and_minutes_apart(spark: SparkSession) -> None:
    ends = [
        a_run_end("succeeded"),
        a_run_end("succeeded", queue="other"),
        a_run_end("succeeded", task=None),
        a_run_end("succeeded", at=after(60)),
        a_run_end("succeeded", at=after(59.999999)),
    ]

    counts = [metric["runs"] for metric in rows(metrics(runs(table(spark, *ends))))]

    assert sorted(counts) == [1, 1, 1, 2]


def test_metrics_tell_how_runs_failed_and_measure_those_that_ended_by_themselves(spark: SparkSession) -> None:
    ends = [
        a_run_end("failed", error_type="OSError", error_kind="error", at=after(2)),
        a_run_end("retrying", error_type="OSError", error_kind="error", at=after(2)),
        a_run_end("retrying", error_type="JobTimeout", error_kind="timeout", at=after(2)),
        a_run_end("retrying", at=after(2)),
        a_run_end("stalled", error_type="Stall", error_kind="stall", at=after(40)),
        a_run_end("returned", at=after(40)),
        a_run_end("cancelled", at=after(40)),
    ]

    (metric,) = rows(metrics(runs(table(spark, *ends))))

    assert metric["failures"] == {"OSError": 2, "JobTimeout": 1, "unknown": 1}
    assert [metric[outcome] for outcome in RUN_ENDS] == [0, 3, 1, 1, 1, 1]
    assert (metric["runs"], metric["timeouts"]) == (7, 1)
    assert (metric["ran_p99"], metric["waited_p50"]) == (1.0, 1.0)


def test_a_history_without_runs_gives_empty_tables(spark: SparkSession) -> None:
    nothing = table(spark)

    sizes = [made.count() for made in (runs(nothing), jobs(nothing), metrics(runs(nothing)))]

    assert sizes == [0, 0, 0]
