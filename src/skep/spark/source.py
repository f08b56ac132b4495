"""The format `skep` as Spark finds it: each class that it names parses its options on the driver.

Spark makes these objects in Python processes of its own and pickles them to its executors: each connects by itself,
when it has something to ask.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from skep.errors import InvalidOption
from skep.spark import events, live, writer
from skep.spark.options import EventsOptions, JobsOptions, WriteOptions, table
from skep.spark.schema import EVENT, LIVE


class SkepSource(DataSource):
    """`format("skep")`: jobs in, jobs and events out."""

    @classmethod
    def name(cls) -> str:
        """What it is called."""
        return "skep"

    def schema(self) -> StructType:
        """The columns of the table that is read; those that are named, if any are."""
        if table(self.options) == "events":
            return _only(EVENT, EventsOptions.parse(self.options).columns)
        return _only(LIVE, JobsOptions.parse(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Jobs or events as they are now."""
        if table(self.options) == "events":
            return events.EventsReader(EventsOptions.parse(self.options), schema)
        return live.JobsReader(JobsOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Events as they come."""
        if table(self.options) == "jobs":
            raise InvalidOption(
                "table", "jobs", "'events' where a stream is read: jobs move, events follow one another"
            )
        return events.EventsStream(EventsOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Rows become jobs."""
        _refuse_to_overwrite(overwrite)
        return writer.RowsWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Rows become jobs, batch by batch."""
        _refuse_to_overwrite(overwrite)
        return writer.StreamWriter(WriteOptions.parse(self.options), schema)


def _refuse_to_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise InvalidOption(
            "mode", "overwrite", "'append', and INSERT INTO in SQL: jobs are added, a queue is never overwritten"
        )


def _only(columns: StructType, names: tuple[str, ...]) -> StructType:
    unknown = [name for name in names if name not in columns.names]
    if unknown:
        raise InvalidOption("columns", ",".join(unknown), f"some of {', '.join(columns.names)}")
    return StructType([columns[name] for name in names]) if names else columns
