"""Rows of a DataFrame as jobs: columns are data, those that begin with `skep_` options. Column by column, for speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import repeat
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from skep.core.codec import encode
from skep.core.limits import MAX_PAYLOAD, check_new_id
from skep.core.options import JobOptions
from skep.core.terms import Terms
from skep.drafts import Template
from skep.errors import InvalidOption, SkepError
from skep.lifecycle import Draft
from skep.spark.schema import ArrowBatch, ArrowColumn, ArrowSchema

OPTION = "skep_"
# A back-off is an object of Python; what else may be said of a job fits into a column.
OPTIONS = frozenset(each.name for each in fields(JobOptions)) - {"backoff"}
BAD_ROWS_TOLD = 20
MICROS = "%Y-%m-%dT%H:%M:%S"

_json = msgspec.json.Encoder().encode
compute: Any = pc  # its functions are made when it is imported


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a job, and why."""

    row: str
    why: str


@dataclass(slots=True)
class BadRowsOfTask:
    """How many rows of a task cannot be jobs, and the first of them."""

    count: int = 0
    examples: list[BadRow] = field(default_factory=list[BadRow])

    def add(self, row: object, why: object) -> None:
        """One more."""
        self.count += 1
        if len(self.examples) < BAD_ROWS_TOLD:
            self.examples.append(BadRow(repr(row)[:200], str(why)))


def check_columns(names: Sequence[str], data_column: str | None) -> None:
    """What is wrong with the columns of a DataFrame is wrong with all of its rows: it is told before any is read."""
    if data_column is not None and data_column not in names:
        raise InvalidOption("dataColumn", data_column, f"one of the columns {', '.join(names)}")
    if data_column is not None and (others := [name for name in _of_data(names) if name != data_column]):
        raise InvalidOption("dataColumn", data_column, f"the place of all columns of data: drop {', '.join(others)}")
    for name in names:
        if name.startswith(OPTION) and name.removeprefix(OPTION) not in OPTIONS:
            known = ", ".join(OPTION + option for option in sorted(OPTIONS))
            raise InvalidOption("column", name, f"names of data, or one of {known}")


def _of_data(names: Sequence[str]) -> list[str]:
    return [name for name in names if not name.startswith(OPTION)]


class Encoder:
    """Data of rows as JSON."""

    def __init__(self, schema: ArrowSchema, data_column: str | None) -> None:
        self._names = [data_column] if data_column else _of_data(schema.names)
        self._whole = data_column is not None
        # What a nested value holds is looked at one by one.
        self._simple = not any(pa.types.is_nested(schema.field(name).type) for name in self._names)
        places = {f"f{place}": name for place, name in enumerate(self._names)}
        shape = msgspec.defstruct("Row", [(place, Any) for place in places], rename=places, gc=False)
        self._row: Callable[..., Any] = shape

    def encode(self, batch: ArrowBatch, bad: BadRowsOfTask) -> list[bytes | None]:
        """The data of each row; None for one that cannot be a job."""
        columns = [plain(batch.column(name)) for name in self._names]
        if not columns:
            return [b"{}"] * batch.num_rows
        texts: list[bytes | None]
        if self._simple and all(_are_finite(batch.column(name)) for name in self._names):
            values: Iterator[Any] = iter(columns[0]) if self._whole else map(self._row, *columns)
            texts = list(map(_json, values))
        else:
            texts = [self._encode(row, bad) for row in zip(*columns, strict=True)]
        for place, text in enumerate(texts):
            if text is not None and len(text) > MAX_PAYLOAD:
                bad.add(text[:100], f"data of {len(text):,} bytes: at most {MAX_PAYLOAD:,} are taken")
                texts[place] = None
        return texts

    def _encode(self, row: tuple[Any, ...], bad: BadRowsOfTask) -> bytes | None:
        value = row[0] if self._whole else dict(zip(self._names, row, strict=True))
        try:
            return encode(value)
        except SkepError as error:
            bad.add(value, error)
            return None


def _are_finite(column: ArrowColumn) -> bool:
    """JSON has no NaN: it would be written as null."""
    return not pa.types.is_floating(column.type) or compute.all(compute.is_finite(column)).as_py() is not False


def plain(column: ArrowColumn) -> list[Any]:
    """The values of a column, such as JSON can write: times as text, maps as objects."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        # As a column this costs less than as objects of Python. The instant is the same in every zone.
        column = column.cast(pa.timestamp("us", tz="UTC")) if kind.tz else column
        column = compute.strftime(column, MICROS + "Z" if kind.tz else MICROS)
    elif pa.types.is_date(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    return [_unmapped(value, kind) for value in values] if _has_maps(kind) else values


def _has_maps(kind: Any) -> bool:
    return pa.types.is_map(kind) or any(_has_maps(kind.field(n).type) for n in range(kind.num_fields))


def _unmapped(value: Any, kind: Any) -> Any:
    """Maps come as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _unmapped(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {
            kind.field(n).name: _unmapped(value[kind.field(n).name], kind.field(n).type) for n in range(kind.num_fields)
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_unmapped(each, kind.value_type) for each in value]
    return value


class Drafter:
    """Jobs of rows that say more than data."""

    def __init__(self, schema: ArrowSchema, said: Terms) -> None:
        self._names = [name.removeprefix(OPTION) for name in schema.names if name.startswith(OPTION)]
        self._said = said
        self._known: dict[tuple[Any, ...], Template] = {}

    @property
    def is_needed(self) -> bool:
        """Whether the rows have options of their own."""
        return bool(self._names)

    def drafts(
        self, batch: ArrowBatch, texts: Sequence[bytes | None], now: Callable[[], int], bad: BadRowsOfTask
    ) -> list[Draft]:
        """A job of each row whose data could be written."""
        ids = _column(batch, "id") if "id" in self._names else repeat(None)
        others = [name for name in self._names if name != "id"]
        columns = [_column(batch, name) for name in others]
        found: list[Draft] = []
        for text, id, row in zip(texts, ids, zip(*columns, strict=True) if others else repeat(()), strict=False):
            if text is None:
                continue
            try:
                template = self._template(others, row, has_id=id is not None)
                draft = template.at(now()) if template.is_cron else template
                found.append(draft.draft(text, None if id is None else check_new_id(id)))
            except (SkepError, TypeError) as error:
                bad.add({"id": id, **dict(zip(others, row, strict=True))}, error)
        return found

    def _template(self, names: list[str], row: tuple[Any, ...], *, has_id: bool) -> Template:
        key = (has_id, *row)
        try:
            if found := self._known.get(key):
                return found
        except TypeError:  # an option that is a list or an object
            return self._made(names, row, has_id=has_id)
        if len(self._known) > 10_000:
            self._known.clear()
        made = self._known[key] = self._made(names, row, has_id=has_id)
        return made

    def _made(self, names: list[str], row: tuple[Any, ...], *, has_id: bool) -> Template:
        given = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        terms = JobOptions(**given).terms
        # What is said of a job that may be there already differs from what is said of a new one.
        return Template.of(terms | ({"id": "x"} if has_id else {}), self._said)


def _column(batch: ArrowBatch, option: str) -> list[Any]:
    values: list[Any] = batch.column(OPTION + option).to_pylist()
    return values
