"""The columns of events, runs, jobs and metrics, for Spark and Arrow. Pinned: only nullable ones are added.

All times are instants, in microseconds. `data`, `result`, `meta` and `details` are JSON texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skep.errors import InvalidOption

TEXT, WHOLE, LONG, SECONDS = StringType(), IntegerType(), LongType(), DoubleType()
TIME, DAY, FLAG = TimestampType(), DateType(), BooleanType()

# pyarrow brings no types along.
ArrowType: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowColumn: TypeAlias = Any

ARROW: dict[DataType, ArrowType] = {
    TEXT: pa.string(),
    WHOLE: pa.int32(),
    LONG: pa.int64(),
    SECONDS: pa.float64(),
    TIME: pa.timestamp("us", tz="UTC"),
    DAY: pa.date32(),
    FLAG: pa.bool_(),
}
"""What Spark takes for each, and gives."""


def arrow_schema(schema: StructType) -> ArrowSchema:
    """The same columns for Arrow, as Spark wants them of a data source and as they stand in Parquet."""
    return pa.schema([pa.field(each.name, _arrow_type(each), each.nullable) for each in schema.fields])


def _arrow_type(column: StructField) -> ArrowType:
    try:
        return ARROW[column.dataType]
    except KeyError:
        kind = column.dataType.simpleString()
        known = ", ".join(each.simpleString() for each in ARROW)
        raise InvalidOption(f"column {column.name}", kind, f"one of {known}") from None


def _columns(names: str, kind: DataType, *, required: bool = False) -> Iterable[StructField]:
    return [StructField(name, kind, nullable=not required) for name in names.split()]


def _columns_of_a_story() -> list[StructField]:
    """What every end of a run or life tells."""
    return [
        *_columns("attempts failures stalls timeouts", WHOLE),
        *_columns("reason result", TEXT),
        *_columns("left_out", FLAG),
        *_columns("error_type error_message error_kind error_traceback", TEXT),
        *_columns("meta write", TEXT),
    ]


EVENT = StructType(
    [
        *_columns("seq", LONG, required=True),
        *_columns("at", TIME, required=True),
        *_columns("type queue", TEXT, required=True),
        *_columns("job", TEXT),
        *_columns("life", LONG),
        *_columns("run", WHOLE),
        *_columns("task name worker by status", TEXT),
        *_columns("due created began started", TIME),
        *_columns("attempts failures stalls timeouts", WHOLE),
        *_columns("reason data result meta", TEXT),
        *_columns("error_type error_message error_kind error_traceback", TEXT),
        *_columns("next_run", TIME),
        *_columns("write", TEXT),
        *_columns("left_out", FLAG),
        *_columns("details", TEXT),
    ]
)
"""One row per event.

seq, at, type, queue   its number in its queue, when, what, where
job, life, run         whose it is; null or 0 where it is of no job, of no run
task, name, meta       of the job
worker, by             who ran it; who caused the event: a worker, or the host and process of a client
status                 after the event; of `removed`: before it
due, created           when the life, or the run that ended, was due; when the life began
began, started         when the life's first run started; when this run did; null where no run is meant
attempts ... timeouts  counts of the life so far
reason                 why it was cancelled or held
data, result           as far as `max_event_data` lets them in; left_out: they were larger
error_...              type, message, kind (error, timeout, stall, permanent) and traceback
next_run               when the life goes on (retrying, stalled, returned), or the next life of its series
write                  the id of the DataFrame write that the life comes from
details                everything else, as a JSON object
"""

RUN = StructType(
    [
        *_columns("queue job", TEXT),
        *_columns("life", LONG),
        *_columns("run", WHOLE),
        *_columns("seq", LONG),
        *_columns("day", DAY),
        *_columns("task name worker outcome", TEXT),
        *_columns("created due started ended", TIME),
        *_columns("waited ran", SECONDS),
        *_columns_of_a_story(),
    ]
)
"""One row per ended run.

seq, day               of the event that ended it; the day is that of UTC
outcome                succeeded, retrying, failed, cancelled, stalled or returned
waited                 seconds from when it could have started, created and due, until it did
ran                    seconds from its start until its end was told; a stalled one ran for less
The other columns are those of the event.
"""

JOB = StructType(
    [
        *_columns("queue job", TEXT),
        *_columns("life seq", LONG),
        *_columns("day", DAY),
        *_columns("task name status", TEXT),
        *_columns("created due began started ended", TIME),
        *_columns("waited ran", SECONDS),
        *_columns_of_a_story(),
        *_columns("next_run", TIME),
    ]
)
"""One row per ended life.

seq, day               of the event that ended it
status                 succeeded, failed, cancelled, removed (unfinished), or merged into the life before it
due, started           of its last run, and so waited and ran; null where no run ended with the life
began                  when its first run started
next_run               when the next life of its series is due
The other columns are those of the event. Lives that a `drop()` ended have no row: one event says how many.
"""

LIVE = StructType(
    [
        *_columns("queue id", TEXT, required=True),
        *_columns("life", LONG),
        *_columns("task name status", TEXT),
        *_columns("reason", TEXT),
        *_columns("priority attempts failures stalls timeouts", WHOLE),
        *_columns("data meta result", TEXT),
        *_columns("error_type error_message error_kind error_traceback", TEXT),
        *_columns("created_at run_at started_at finished_at expires_at", TIME),
        *_columns("worker write", TEXT),
    ]
)
"""One row per job as it is now, with the names that `Job` has for all of it; also one per second job of an id.

reason                 why it is held, or was cancelled
worker                 who runs it, or ran it last
write                  the id of the DataFrame write that it comes from
"""

METRIC = StructType(
    [
        *_columns("queue task", TEXT),
        *_columns("minute", TIME),
        *_columns("runs succeeded retrying failed cancelled stalled returned timeouts", LONG),
        StructField("failures", MapType(TEXT, LONG, valueContainsNull=False)),
        *_columns("waited_p50 waited_p95 waited_p99 ran_p50 ran_p95 ran_p99", SECONDS),
    ]
)
"""One row per queue, task and minute in which runs ended.

runs                   how many ended, and of them: succeeded ... returned
timeouts               of those that failed, for good or not: how many because their time was up
failures               the same by type of error
waited_..., ran_...    exact quantiles in seconds; `ran` of runs that came to an end by themselves
"""
