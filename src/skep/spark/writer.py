"""Writes for Spark: tasks stage, one commit on the driver decides. The work is done in `rows.py` and `staging.py`.

Spark aborts also what it has committed, when the commit's process dies after its work: so an abort undoes nothing. What
nobody decides goes by itself, and a decided write is finished by whoever comes by.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from skep import views
from skep.core.ids import new_id
from skep.core.keys import Keys
from skep.core.limits import check_label
from skep.errors import InvalidOption, SkepError
from skep.spark import staging
from skep.spark.at import opened, store_at
from skep.spark.options import WriteOptions
from skep.spark.rows import check_columns
from skep.spark.schema import ArrowBatch
from skep.spark.staging import Staged, WritePlan
from skep.store.sync import Store
from skep.views import Written


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task tells the commit."""

    staged: Staged
    write: str


def plan_of(wanted: WriteOptions, schema: StructType, write: str) -> WritePlan:
    """What every task must know. What is wrong with all rows is refused here, on the driver."""
    check_columns(schema.names, wanted.data_column)
    return WritePlan(
        queue=wanted.queue,
        write=write,
        prefix=wanted.prefix,
        task=wanted.task,
        data_column=wanted.data_column,
        ttl=wanted.staging_ttl_ms,
    )


def stage(store: Store, plan: WritePlan, batches: Iterator[ArrowBatch]) -> StagedMessage:
    """Stages the rows of one task."""
    with closing(store):
        stager = staging.Stager(store, plan)
        for batch in batches:
            stager.add(batch)
        return StagedMessage(stager.finish(), plan.write)


def commit(store: Store, plan: WritePlan, staged: Sequence[Staged], *, skip_bad: bool) -> tuple[bool, Written]:
    """Decides a write, and moves its rows. Whether this decided it, and what became of it."""
    if not skip_bad:
        staging.check_bad(staged)
    is_new = staging.decide(store, plan, staged)
    return is_new, staging.move_all(store, plan)


def say(text: str) -> None:
    """A line for who waits for the write. Spark hands it on to the standard error of the driver."""
    print(f"skep: {text}", file=sys.stderr, flush=True)


class RowsWriter(DataSourceArrowWriter):
    """A batch write. One whose id was committed before is skipped."""

    def __init__(self, wanted: WriteOptions, schema: StructType) -> None:
        self._skip_bad = wanted.bad_rows == "skip"
        self._plan = plan_of(wanted, schema, wanted.write_id or new_id())
        self._store = store_at(wanted.url)
        # Known from the start, its rows need not be staged in vain.
        self._is_over = wanted.write_id is not None and self._written() is not None

    def _written(self) -> Written | None:
        return self._store.send(views.written(self._plan.keys, self._plan.write))

    def write(self, iterator: Iterator[ArrowBatch]) -> StagedMessage:
        """Stages the rows of one task."""
        return stage(self._store, self._plan, iter(()) if self._is_over else iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Decides the write, and moves its rows."""
        staged = [message.staged for message in messages if isinstance(message, StagedMessage)]
        plan = self._plan
        with closing(self._store) as store:
            is_new, written = commit(store, plan, staged, skip_bad=self._skip_bad)
        bad = sum(each.bad for each in staged)
        say(
            f"write {plan.write!r} to queue {plan.queue!r}"
            + ("" if is_new else " was committed before and is skipped")
            + f": {written.added:,} added, {written.updated + written.blocked:,} updated, {written.ignored:,} ignored"
            + (f", {bad:,} rows that cannot be jobs left out" if bad else "")
        )


class StreamWriter(DataSourceStreamArrowWriter):
    """A streaming write: each batch of a query, as its checkpoint knows it, is decided once."""

    def __init__(self, wanted: WriteOptions, schema: StructType) -> None:
        if wanted.write_id is not None:
            raise InvalidOption(
                "writeId", wanted.write_id, "effect with df.write only: a stream's checkpoint is its id"
            )
        self._skip_bad = wanted.bad_rows == "skip"
        self._plan = plan_of(wanted, schema, "")
        self._store = store_at(wanted.url)

    def write(self, iterator: Iterator[ArrowBatch]) -> StagedMessage:
        """Stages the rows of one task of one batch."""
        context = TaskContext.get()
        query = context and context.getLocalProperty("sql.streaming.queryId")
        batch = context and context.getLocalProperty("streaming.sql.batchId")
        if not query or not batch:
            raise SkepError("Spark does not tell a streaming write its query and batch: use PySpark 4.2 or newer")
        return stage(self._store, replace(self._plan, write=f"{query}/{batch}"), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Decides a batch, and moves its rows."""
        told = [message for message in messages if isinstance(message, StagedMessage)]
        if not told:
            return
        write = told[0].write
        plan = replace(self._plan, write=write, stream=(write.rpartition("/")[0], batchId))
        with closing(self._store) as store:
            commit(store, plan, [each.staged for each in told], skip_bad=self._skip_bad)


def written(id: str, *, queue: str | None = None, url: str | None = None, prefix: str = "skep") -> Written | None:
    """How many rows of a write were added, updated, blocked and ignored so far; None: it was never committed.

    `id` is the `writeId`, or of a stream the id of its query, a slash and the number of the batch.
    """
    if queue is None:
        raise InvalidOption("queue", queue, "the name of the queue that was written to, such as 'mail'")
    with opened(url) as store:
        return store.send(views.written(Keys(queue, prefix), check_label("id", id)))
