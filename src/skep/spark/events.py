"""Events for Spark: a batch read of what there is, and a stream of what comes. The work is done in `feed.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from skep import lifecycle
from skep.core.keys import Keys
from skep.errors import InvalidOption
from skep.spark import decode, feed
from skep.spark.at import store_at
from skep.spark.feed import Feed, Offsets
from skep.spark.options import EventsOptions, named_queues
from skep.spark.schema import ArrowBatch, arrow_schema
from skep.store.sync import Store


@dataclass
class SliceOfEvents(InputPartition):
    """What one task reads; None: nothing. Spark makes one of its own of an empty list, with which it calls `read`."""

    part: feed.Slice | None


def partitions(parts: Sequence[feed.Slice]) -> list[InputPartition]:
    """A task for each slice, and one at least."""
    return [SliceOfEvents(part) for part in parts] or [SliceOfEvents(None)]


def rows(store: Store, partition: InputPartition, schema: StructType) -> Iterator[ArrowBatch]:
    """The events of a slice: the same whenever it is read."""
    part = cast("SliceOfEvents", partition).part
    if part is None:
        return
    with closing(store):
        yield from decode.batches(feed.read(store, part), part, arrow_schema(schema))


def start_of(wanted: EventsOptions) -> Offsets:
    """What is done with before the first read: nothing, or the events up to a number."""
    return {queue: {"seq": wanted.since, "at": None} for queue in wanted.queues.names} if wanted.since else {}


class EventsReader(DataSourceReader):
    """A batch read: each queue from where it begins to where it ends now."""

    def __init__(self, wanted: EventsOptions, schema: StructType) -> None:
        if wanted.reader is not None:
            raise InvalidOption(
                "reader", wanted.reader, "effect with spark.readStream only: a batch read commits nothing"
            )
        self._start = start_of(wanted)
        self._store = store_at(wanted.url)
        self._feed = Feed(self._store, named_queues(wanted.queues), wanted.prefix)
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Each queue that has events, in slices."""
        return partitions(self._feed.slices(self._start, self._feed.ends(self._start)))

    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        """The events of one slice."""
        return rows(self._store, partition, self._schema)


class EventsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events as they come. An offset names the last event of each queue that was read, with its time."""

    def __init__(self, wanted: EventsOptions, schema: StructType) -> None:
        self._wanted = wanted
        self._start = start_of(wanted)
        # One for as long as the query runs: an idle one asks a hundred times a second.
        self._store = store_at(wanted.url)
        self._feed = Feed(self._store, named_queues(wanted.queues), wanted.prefix)
        self._schema = schema
        self._until: Offsets | None = None
        self._registered = False

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Before the first event that is asked for: constant, since Spark asks more than once."""
        return self._start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """So many events in a micro-batch."""
        return ReadMaxRows(self._wanted.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What comes from now on is left to the next time."""
        self._until = self.reportLatestOffset()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        self._register(start)
        return self._feed.ends(start, room=room_of(limit), until=self._until)

    def reportLatestOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Where the streams end now: the lag in the query's progress."""
        return self._feed.ends({})

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """What lies between, in slices."""
        self._register(start)
        return partitions(self._feed.slices(start, end))

    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        """The events of one slice."""
        return rows(self._store, partition, self._schema)

    def commit(self, end: Offsets) -> None:
        """A registered reader has done with these: they need not be kept for it."""
        if self._wanted.reader is None:
            return
        for queue, last in end.items():
            self._store.send(lifecycle.reader(self._keys(queue), self._wanted.reader, last["seq"] or 0))

    def stop(self) -> None:
        """The query is over."""
        self._store.close()

    def _register(self, start: Offsets) -> None:
        """Before its first read, so that nothing is trimmed from then on that it has not committed."""
        if self._wanted.reader is None or self._registered:
            return
        for queue in self._wanted.queues.names:
            seq = start[queue]["seq"] if queue in start else 0
            self._store.send(lifecycle.reader(self._keys(queue), self._wanted.reader, seq or 0, begins=True))
        self._registered = True

    def _keys(self, queue: str) -> Keys:
        return Keys(queue, self._wanted.prefix)


def room_of(limit: ReadLimit) -> int | None:
    """How many events a micro-batch may have; None: as many as there are."""
    if isinstance(limit, ReadAllAvailable):
        return None
    return int(getattr(limit, "max_rows", 0)) or None
