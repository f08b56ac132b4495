"""Events -> runs and jobs, runs -> metrics: functions of DataFrames, wherever these come from.

Runs and jobs are projections of single events: no shuffle, no state, and a late event changes nothing else.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from skep.core.states import FINISHED, UNFINISHED
from skep.spark.schema import JOB, METRIC, RUN

OUTCOMES = ("succeeded", "retrying", "failed", "cancelled", "stalled", "returned")
FAILURES = ("retrying", "failed")
BY_THEMSELVES = ("succeeded", *FAILURES)
QUANTILES = (0.5, 0.95, 0.99)
MICROS_A_DAY = 86_400_000_000


def runs(events: DataFrame) -> DataFrame:
    """One row per ended run, with the columns of `skep.spark.schema.RUN`."""
    ended = sql.col("type").isin(*OUTCOMES) & (sql.col("run") > 0) & sql.col("started").isNotNull()
    return _project(events.where(ended), RUN, outcome=sql.col("type"))


def jobs(events: DataFrame) -> DataFrame:
    """One row per ended life, with the columns of `skep.spark.schema.JOB`."""
    ended = sql.col("type").isin(*sorted(FINISHED), "merged")
    removed = (sql.col("type") == "removed") & sql.col("status").isin(*sorted(UNFINISHED))
    return _project(events.where(ended | removed), JOB, status=sql.col("type"))


def _project(ends: DataFrame, table: StructType, **columns: Column) -> DataFrame:
    """The columns of a table: some worked out, the others as the event has them."""
    columns |= {
        "day": sql.date_from_unix_date(sql.floor(sql.unix_micros("at") / MICROS_A_DAY).cast("int")),
        "ended": sql.col("at"),
        "waited": _seconds(sql.greatest("created", "due"), sql.col("started")),
        "ran": _seconds(sql.col("started"), sql.col("at")),
    }
    return ends.select(
        [columns.get(each.name, sql.col(each.name)).cast(each.dataType).alias(each.name) for each in table.fields]
    )


def _seconds(start: Column, end: Column) -> Column:
    return (sql.unix_micros(end) - sql.unix_micros(start)) / 1_000_000


def metrics(runs: DataFrame) -> DataFrame:
    """Load, failures and quantiles per queue, task and minute: the columns of `skep.spark.schema.METRIC`."""
    failed = sql.col("outcome").isin(*FAILURES)
    grouped = runs.groupBy("queue", "task", sql.date_trunc("minute", "ended").alias("minute")).agg(
        sql.count("*").alias("runs"),
        *(sql.count_if(sql.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
        sql.count_if(failed & (sql.col("error_kind") == "timeout")).alias("timeouts"),
        sql.collect_list(sql.when(failed, sql.coalesce("error_type", sql.lit("unknown")))).alias("failures"),
        _quantiles(sql.col("waited")).alias("waited"),
        _quantiles(sql.when(sql.col("outcome").isin(*BY_THEMSELVES), sql.col("ran"))).alias("ran"),
    )
    columns = {"failures": _count_each(sql.col("failures"))} | {
        f"{name}_p{quantile * 100:.0f}": sql.col(name)[place]
        for name in ("waited", "ran")
        for place, quantile in enumerate(QUANTILES)
    }
    return grouped.select([columns.get(name, sql.col(name)).alias(name) for name in METRIC.names])


def _quantiles(column: Column) -> Column:
    return sql.percentile(column, sql.array(*map(sql.lit, QUANTILES)))


def _count_each(texts: Column) -> Column:
    """An array of texts as a map from each to how often it is there."""

    def count(text: Column) -> Column:
        return sql.struct(text, sql.size(sql.filter(texts, lambda other: other == text)).cast("long"))

    return sql.map_from_entries(sql.transform(sql.array_sort(sql.array_distinct(texts)), count))
