"""Rows as columns: what becomes Arrow batches, without an object per row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from skep.core import record
from skep.core.job import JobError, decode_error
from skep.core.record import DUE, FIRST_LETTER, LIFE, OPTIONS, TASK
from skep.spark.schema import ArrowBatch, ArrowColumn, ArrowSchema

NO_ERROR = JobError()
MS = pa.timestamp("ms", tz="UTC")
Head = record.Record


class Columns:
    """Values by column: `dense` ones have one for each row, of the others those there are stand by their row."""

    def __init__(self, schema: ArrowSchema) -> None:
        self.schema = schema
        self.rows = 0
        self.dense: dict[str, list[Any]] = defaultdict(list)
        self.sparse: dict[str, dict[int, Any]] = defaultdict(dict)

    def batch(self) -> ArrowBatch:
        """The rows so far. Their times are milliseconds."""
        return pa.RecordBatch.from_arrays([self._array(column) for column in self.schema], schema=self.schema)

    def _array(self, column: Any) -> ArrowColumn:
        values = self.dense.get(column.name)
        others = self.sparse.get(column.name)
        if not values and not others:
            return pa.nulls(self.rows, column.type)
        if others:
            values = list(values) if values else [None] * self.rows
            for row, value in others.items():
                values[row] = value
        if pa.types.is_timestamp(column.type):
            return pa.array(values, MS).cast(column.type)
        return pa.array(values, column.type)


class Heads:
    """Heads of records, each worked out once: many jobs share theirs."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def read(self, raw: bytes, start: int = 0) -> tuple[Head, int]:
        """The head that begins there, and where it ends."""
        flags, end = raw[start] - FIRST_LETTER, start + 7
        if flags:
            if flags & DUE:
                end += 6
            if flags & LIFE:
                end += 6
            if flags & TASK:
                end += 1 + raw[end]
            if flags & OPTIONS:
                end += 4 + int.from_bytes(raw[end : end + 4], "big")
        text = raw[start:end]
        head = self._known.get(text)
        if head is None:
            head = self._known[text] = record.read_head(text)[0]
        return head, end


def error_columns(columns: dict[str, dict[int, Any]], row: int, text: bytes) -> None:
    """What a run failed with, in the columns `error_...`."""
    try:
        error = decode_error(text)
    except msgspec.DecodeError:
        error = JobError(type="Unreadable", message=text.decode(errors="replace"))
    columns["error_type"][row] = error.type or None
    columns["error_message"][row] = error.message
    columns["error_kind"][row] = error.kind
    columns["error_traceback"][row] = error.traceback or None


def needed(schema: ArrowSchema, names: Sequence[str]) -> bool:
    """Whether any of these columns is wanted."""
    return any(name in schema.names for name in names)
