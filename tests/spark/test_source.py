"""The format `skep` in Spark itself: what only a session can show. The rest is tested without one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

import skep.spark
from skep import Queue, lifecycle
from skep.core.keys import Keys
from skep.spark.at import opened
from skep.testing import Server
from tests.support.engine import Engine

pytestmark = pytest.mark.spark

KEYS = Keys("mail")


@pytest.fixture
def mail(skep_url: str) -> Iterator[Queue]:
    with Queue("mail") as queue:
        yield queue


def write(rows: DataFrame, url: str, **options: str) -> None:
    """To the queue `mail`."""
    rows.write.format("skep").options(url=url, queue="mail", **options).mode("append").save()


def read(spark: SparkSession, url: str, **options: str) -> DataFrame:
    """From the queue `mail`."""
    return spark.read.format("skep").options(**{"url": url, "queue": "mail"} | options).load()


def users(mail: Queue) -> list[int]:
    return sorted(job.data["user_id"] for job in mail.jobs())


def fails_once(folder: Path) -> Callable[[int], int]:
    """A function whose first call in all processes fails, after rows before it were handed on."""

    def check(user_id: int) -> int:
        if user_id == 4_999:
            try:
                (folder / "failed").mkdir()
            except FileExistsError:
                return user_id
            raise RuntimeError("this attempt dies here")
        return user_id

    return check


def test_a_write_that_fails_half_way_leaves_nothing_and_its_repetition_adds_each_row_once(
    spark: SparkSession, skep_url: str, mail: Queue, tmp_path: Path
) -> None:
    check = sql.udf(fails_once(tmp_path), "bigint", useArrow=False)
    retried = spark.range(5000).repartition(3).select(check("id").alias("user_id"))

    with pytest.raises(PySparkException, match="this attempt dies here"):
        write(retried, skep_url, writeId="w")
    nothing = mail.counts().total
    write(retried, skep_url, writeId="w")

    assert nothing == 0
    assert users(mail) == list(range(5000))


RETRIED = """
import os, sys
from pathlib import Path
from pyspark.sql import functions as sql
import skep.spark

url, mark = sys.argv[1:]

def die_once(user_id):
    if user_id == 4_999:
        try:
            Path(mark).mkdir()
            os._exit(9)
        except FileExistsError:
            pass
    return user_id

spark = skep.spark.session("local[2,4]")
rows = spark.range(5000).repartition(3).select(sql.udf(die_once, "bigint", useArrow=False)("id").alias("user_id"))
rows.write.format("skep").options(url=url, queue="mail").mode("append").save()
spark.stop()
"""


@pytest.mark.timeout(180)  # it starts a session of its own, on which tasks are tried again
def test_a_write_of_which_a_process_dies_goes_on_and_adds_each_row_once(
    skep_url: str, mail: Queue, tmp_path: Path
) -> None:
    mark = tmp_path / "died"

    ran = subprocess.run(
        [sys.executable, "-c", RETRIED, skep_url, str(mark)], capture_output=True, text=True, timeout=150, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert mark.exists()
    assert users(mail) == list(range(5000))
    assert "to queue 'mail': 5,000 added, 0 updated, 0 ignored" in ran.stderr


def test_a_write_said_again_by_its_id_is_skipped(spark: SparkSession, skep_url: str, mail: Queue) -> None:
    rows = spark.range(100).selectExpr("id AS user_id")

    for _ in range(2):
        write(rows, skep_url, writeId="once")

    assert users(mail) == list(range(100))
    told = skep.spark.written("once", queue="mail", url=skep_url)
    assert told is not None
    assert (told.rows, told.added, told.done) == (100, 100, True)


def test_bad_rows_refuse_a_write_or_are_left_out_as_it_says(spark: SparkSession, skep_url: str, mail: Queue) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, 1.5D), (2, double('NaN')) AS t(user_id, score)")

    with pytest.raises(AnalysisException, match=r"1 rows cannot be jobs.*data\.score: nan is not a number"):
        write(rows, skep_url)
    nothing = mail.counts().total
    write(rows, skep_url, badRows="skip")

    assert nothing == 0
    assert users(mail) == [1]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("INSERT OVERWRITE welcome VALUES (1)", "jobs are added, a queue is never overwritten"),
        ("INSERT INTO bad VALUES (1)", "skep_priority"),
        ("INSERT INTO unnamed VALUES (1)", "CREATE TEMPORARY VIEW v USING skep"),
    ],
)
def test_what_no_queue_can_do_is_refused_in_words(
    spark: SparkSession, skep_url: str, mail: Queue, statement: str, told: str
) -> None:
    for view, column, options in (
        ("welcome", "user_id", "queue 'mail'"),
        ("bad", "skep_prio", "queue 'mail'"),
        ("unnamed", "user_id", "task 'welcome'"),
    ):
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {view} ({column} INT) USING skep OPTIONS ({options}, url '{skep_url}')"
        )

    with pytest.raises(PySparkException, match=told):
        spark.sql(statement)

    assert mail.counts().total == 0


def test_a_table_that_has_lost_its_queue_is_refused_with_a_hint(spark: SparkSession, skep_url: str) -> None:
    spark.sql(f"CREATE TABLE lost USING skep OPTIONS (queue 'mail', url '{skep_url}')")

    with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW v USING skep"):
        spark.sql("SELECT * FROM lost").collect()

    spark.sql("DROP TABLE lost")


def test_sql_adds_to_a_view_and_selects_from_another(spark: SparkSession, skep_url: str, mail: Queue) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW welcome (user_id INT, lang STRING) USING skep"
        f" OPTIONS (queue 'mail', task 'welcome', url '{skep_url}')"
    )
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW mails USING skep OPTIONS (queue 'mail', url '{skep_url}')")

    spark.sql("INSERT INTO welcome VALUES (1, 'de'), (2, 'fr')")

    found = spark.sql("SELECT task, data FROM mails WHERE status = 'waiting' ORDER BY data").collect()
    assert [tuple(row) for row in found] == [
        ("welcome", '{"user_id":1,"lang":"de"}'),
        ("welcome", '{"user_id":2,"lang":"fr"}'),
    ]


@pytest.mark.parametrize("pushed", [True, False])
def test_queries_of_one_dataframe_each_see_all_jobs_whether_or_not_the_session_pushes_filters_down(
    spark: SparkSession, skep_url: str, mail: Queue, pushed: bool
) -> None:
    mail.add_many(range(50), name="many")
    mail.add(None, id="gone")
    mail.cancel("gone")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", str(pushed).lower())

    jobs = read(spark, skep_url)
    cancelled = jobs.where("status = 'cancelled' AND finished_at > TIMESTAMP '2001-01-01'")
    waiting = jobs.where("status = 'waiting' AND name = 'many' AND run_at < current_timestamp()")
    counts = [each.count() for each in (cancelled, jobs, waiting, cancelled.union(waiting), jobs)]

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert counts == [1, 51, 50, 51, 51]


def test_options_say_which_jobs_and_columns_are_fetched(spark: SparkSession, skep_url: str, mail: Queue) -> None:
    mail.add_many(range(5))
    mail.add("this one", id="wanted")
    mail.cancel("wanted")

    found = read(spark, skep_url, columns="id,data", status="cancelled,failed").collect()

    assert [row.asDict() for row in found] == [{"id": "wanted", "data": '"this one"'}]


def test_reading_queues_without_events_or_jobs_gives_no_rows(spark: SparkSession, skep_url: str) -> None:
    counts = [read(spark, skep_url, table=table, queue="empty").count() for table in ("events", "jobs")]

    assert counts == [0, 0]


def test_several_queues_are_read_as_one_table_each_with_its_own_numbers(
    spark: SparkSession, skep_url: str, mail: Queue
) -> None:
    mail.add_many(range(3))
    with Queue("a,b") as other:
        other.add_many(range(2))

    events = read(spark, skep_url, table="events", queues='["mail","a,b"]')

    assert sorted((row.queue, row.seq) for row in events.collect()) == [
        ("a,b", 1),
        ("a,b", 2),
        ("mail", 1),
        ("mail", 2),
        ("mail", 3),
    ]


class Streamed:
    """A query from the events of `mail` into Parquet, run until there is no more."""

    def __init__(self, spark: SparkSession, url: str, folder: Path) -> None:
        self.spark, self.url, self.folder = spark, url, folder

    def run(self, **options: str) -> StreamingQuery:
        """One start, to the end of what there is."""
        events = self.spark.readStream.format("skep").options(url=self.url, queue="mail", table="events", **options)
        query = (
            events.load()
            .writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        return query

    def numbers(self) -> list[int]:
        """What has come out."""
        return sorted(row.seq for row in self.spark.read.parquet(str(self.folder / "out")).select("seq").collect())


def test_a_stream_reads_all_there_is_in_limited_batches_and_tells_how_far_it_is(
    spark: SparkSession, skep_url: str, mail: Queue, tmp_path: Path
) -> None:
    for _ in range(5):
        mail.add_many(range(100))
    stream = Streamed(spark, skep_url, tmp_path)

    query = stream.run(rowsPerBatch="200")

    assert stream.numbers() == list(range(1, 501))
    read_at_once = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert read_at_once == [200, 200, 100]
    assert '"seq": 500' in str(query.recentProgress[-1].sources[0].latestOffset)


def test_a_stream_goes_on_from_its_checkpoint_and_its_reader_holds_trimming_back(
    spark: SparkSession, skep_url: str, mail: Queue, tmp_path: Path
) -> None:
    with opened(skep_url) as store:
        store.send(lifecycle.configure(KEYS, {"max_events": "1"}))
        stream = Streamed(spark, skep_url, tmp_path)
        mail.add_many(range(10))
        stream.run(reader="parquet")
        for n in range(300):
            mail.add(n)

        stream.run(reader="parquet")

    configured_counted_and_added = 2 + 310
    assert stream.numbers() == list(range(1, configured_counted_and_added + 1))


def test_a_stream_whose_next_events_are_gone_ends_loudly(
    spark: SparkSession, skep_url: str, mail: Queue, skep_server: Server, tmp_path: Path
) -> None:
    stream = Streamed(spark, skep_url, tmp_path)
    mail.add(1)
    stream.run()
    for n in range(9):
        mail.add(n)
    engine = Engine(skep_server.path, "mail")
    engine.command("XTRIM", KEYS.events, "MINID", 6)

    with pytest.raises(PySparkException, match="events 2 to 5 were trimmed before this reader read them"):
        stream.run()

    engine.close()


def test_a_stream_over_a_server_that_has_forgotten_ends_loudly(
    spark: SparkSession, skep_url: str, mail: Queue, skep_server: Server, tmp_path: Path
) -> None:
    stream = Streamed(spark, skep_url, tmp_path)
    mail.add_many(range(5))
    stream.run()
    skep_server.empty()
    mail.add_many(range(7))

    with pytest.raises(PySparkException, match="event 5 is another one than it was"):
        stream.run()


def test_a_streaming_write_adds_each_batch_once_though_its_query_begins_again(
    spark: SparkSession, skep_url: str, mail: Queue, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"

    def run() -> str:
        rows = spark.readStream.schema("user_id BIGINT").parquet(str(source))
        query = (
            rows.writeStream.format("skep")
            .options(url=skep_url, queue="mail", task="welcome", checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        return query.id

    spark.range(50).withColumnRenamed("id", "user_id").write.parquet(str(source))
    name = run()
    # As a driver that dies when the batch is decided: it is not in the checkpoint, and comes again.
    for file in (checkpoint / "commits").iterdir():
        file.unlink()

    assert run() == name
    assert users(mail) == list(range(50))
    told = skep.spark.written(f"{name}/0", queue="mail", url=skep_url)
    assert told is not None
    assert told.added == 50
