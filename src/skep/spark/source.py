"""The format `skep` as Spark sees it: each class here parses options on the driver and leaves the work to plain Python.

Spark makes these objects in Python processes of its own and pickles them to its executors, so nothing here holds a
connection: each method that needs the server opens one and closes it.
"""

# pyright: reportUnknownParameterType=false
# pyarrow has no types.
from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from skep import embedded, lifecycle
from skep.core.keys import Keys
from skep.errors import InvalidOption
from skep.spark import feed, options, staging
from skep.spark.schema import EVENT, arrow_schema
from skep.store.connect import Connection
from skep.store.sync import Store


def resolved(url: str | None) -> str:
    """Where the server is, as every executor can be told: a folder by name, not by who asks."""
    found = url or embedded.default_url()
    return embedded.url_of(embedded.place()) if found in ("embedded://", "embedded:///") else found


def opened(url: str) -> closing[Store]:
    """A connection of this process, for a `with`."""
    return closing(Store(Connection(url)))


class SkepSource(DataSource):
    """`format("skep")`: jobs in, jobs and events out."""

    @classmethod
    def name(cls) -> str:
        """What it is called."""
        return "skep"

    def schema(self) -> StructType:
        """The columns of the table that is read."""
        if options.table(self.options) == "events":
            return EVENT
        raise InvalidOption("table", "jobs", "'events': reading jobs is still to come")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Events as they are now."""
        return EventsReader(options.EventsOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Events as they come."""
        return EventsStream(options.EventsOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 - Spark's signature
        """Rows become jobs."""
        if overwrite:
            raise InvalidOption("mode", "overwrite", "'append': jobs are added, and never overwrite a queue")
        return RowsWriter(options.WriteOptions.parse(self.options))


@dataclass
class SliceOfEvents(InputPartition):
    """What one task reads."""

    part: feed.Slice


def read_slice(url: str, partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of a slice, in batches."""
    part = cast("SliceOfEvents", partition).part
    with opened(url) as store:
        yield from feed.batches(feed.read(store, part), part.queue, schema)


def _named_queues(chosen: options.QueueChoice) -> Sequence[str]:
    if chosen.is_open:
        raise InvalidOption("queue", ", ".join(chosen.words), "names of queues: patterns are still to come")
    return chosen.names


class EventsReader(DataSourceReader):
    """A batch read: each queue from where it begins to where it ends now."""

    def __init__(self, wanted: options.EventsOptions, schema: StructType) -> None:
        self._wanted = replace(wanted, url=resolved(wanted.url))
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """One slice per queue that has events."""
        with opened(str(self._wanted.url)) as store:
            slices = [
                feed.whole(store, queue, self._wanted.prefix, since=self._wanted.since)
                for queue in _named_queues(self._wanted.queues)
            ]
        return [SliceOfEvents(part) for part in slices if part.end > part.after]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a slice."""
        return read_slice(str(self._wanted.url), partition, self._schema)


class EventsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: offsets are the numbers of events, by queue."""

    def __init__(self, wanted: options.EventsOptions, schema: StructType) -> None:
        self._wanted = replace(wanted, url=resolved(wanted.url))
        self._schema = arrow_schema(schema)
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Before the first event that is asked for: constant, since Spark asks more than once."""
        return dict.fromkeys(_named_queues(self._wanted.queues), self._wanted.since)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """So many events in a micro-batch."""
        return ReadMaxRows(self._wanted.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What comes from now on is left to the next time."""
        self._until = self._latest()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        latest = self._until or self._latest()
        room = latest_room(limit)
        end: dict[str, int] = {}
        for queue, last in latest.items():
            after = start.get(queue, 0)
            end[queue] = last if room is None else min(last, after + room)
            room = None if room is None else max(0, room - (end[queue] - after))
        return end

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where the streams end now: the lag in the query's progress."""
        return self._latest()

    def _latest(self) -> dict[str, int]:
        with opened(str(self._wanted.url)) as store:
            return {
                queue: feed.latest(store, queue, self._wanted.prefix) for queue in _named_queues(self._wanted.queues)
            }

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One slice per queue."""
        prefix = self._wanted.prefix
        slices = (feed.Slice(queue, start.get(queue, 0), last, prefix) for queue, last in end.items())
        return [SliceOfEvents(part) for part in slices if part.end > part.after]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a slice: the same whenever it is read."""
        return read_slice(str(self._wanted.url), partition, self._schema)

    def commit(self, end: dict[str, int]) -> None:
        """A registered reader has done with these: they need not be kept for it."""
        if self._wanted.reader is None:
            return
        with opened(str(self._wanted.url)) as store:
            for queue, last in end.items():
                store.send(lifecycle.reader(Keys(queue, self._wanted.prefix), self._wanted.reader, last))


def latest_room(limit: ReadLimit) -> int | None:
    """How many events a micro-batch may have; None: as many as there are."""
    if isinstance(limit, ReadAllAvailable):
        return None
    return int(getattr(limit, "max_rows", 0)) or None


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task tells the commit."""

    staged: staging.Staged


class RowsWriter(DataSourceArrowWriter):
    """A batch write: tasks stage, one commit decides. An abort undoes nothing: what nobody decides goes by itself."""

    def __init__(self, wanted: options.WriteOptions) -> None:
        self._url = resolved(wanted.url)
        self._skip_bad = wanted.bad_rows == "skip"
        self._plan = staging.WritePlan(
            queue=wanted.queue,
            write=wanted.write_id or secrets.token_hex(8),
            prefix=wanted.prefix,
            task=wanted.task,
            data_column=wanted.data_column,
            ttl=wanted.staging_ttl_ms,
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stages the rows of one task."""
        with opened(self._url) as store:
            stager = staging.Stager(store, self._plan)
            for batch in iterator:
                rows: list[Mapping[str, Any]] = batch.to_pylist()
                stager.add(rows)
            return StagedMessage(stager.finish())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Decides the write, and moves its rows."""
        staged = [message.staged for message in messages if isinstance(message, StagedMessage)]
        with opened(self._url) as store:
            staging.decide(store, self._plan, staged, skip_bad=self._skip_bad)
            staging.move_all(store, self._plan)
