"""Jobs for Spark: a batch read of what there is. The work is done in `walking.py`.

There is no `pushFilters` here: PySpark 4.3 keeps what a reader made of one query's filters for all others of the same
DataFrame or view, and for both sides of a union, so that rows would be missing without a word. What is not to be
fetched at all is said by the options `id`, `name` and `status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skep.spark import walking
from skep.spark.at import store_at
from skep.spark.options import JobsOptions, named_queues
from skep.spark.schema import ArrowBatch, arrow_schema
from skep.spark.walking import JobsOf, Picked


@dataclass
class QueueOfJobs(InputPartition):
    """What one task reads."""

    part: JobsOf


class JobsReader(DataSourceReader):
    """Each queue is read by a task of its own."""

    def __init__(self, wanted: JobsOptions, schema: StructType) -> None:
        picked = Picked(
            ids=frozenset(wanted.ids), names=frozenset(wanted.names), statuses=frozenset(map(str, wanted.statuses))
        )
        self._parts = [JobsOf(queue, wanted.prefix, picked) for queue in named_queues(wanted.queues)]
        self._store = store_at(wanted.url)
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One for each queue, of which there is one at least."""
        return [QueueOfJobs(part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        """The jobs of a queue."""
        with closing(self._store) as store:
            yield from walking.read(store, cast("QueueOfJobs", partition).part, arrow_schema(self._schema))
