"""Rows as data and options, without Spark and without a server."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skep.errors import InvalidOption
from skep.spark.rows import BadRowsOfTask, Drafter, Encoder, check_columns
from skep.spark.schema import ArrowBatch


def encoded(batch: ArrowBatch, data_column: str | None = None) -> tuple[list[Any], BadRowsOfTask]:
    bad = BadRowsOfTask()
    texts = Encoder(batch.schema, data_column).encode(batch, bad)
    return [None if text is None else msgspec.json.decode(text) for text in texts], bad


def test_columns_become_the_data_by_name_whatever_their_type() -> None:
    batch = pa.record_batch(
        {
            "user_id": pa.array([1, None]),
            "two words": pa.array(["\u00e9", '"']),
            "score": pa.array([1.0, None]),
            "paid": pa.array([Decimal("1.50"), None]),
            "day": pa.array([date(2024, 5, 17), None]),
            "at": pa.array([datetime(2024, 5, 17, 12, tzinfo=UTC), None], pa.timestamp("us", tz="Europe/Paris")),
        }
    )

    [first, second], bad = encoded(batch)

    assert first == {
        "user_id": 1,
        "two words": "\u00e9",
        "score": 1.0,
        "paid": "1.50",
        "day": "2024-05-17",
        "at": "2024-05-17T12:00:00.000000Z",
    }
    assert second == dict.fromkeys(first) | {"two words": '"'}
    assert bad.count == 0


def test_nested_columns_become_lists_and_objects_maps_included() -> None:
    kind = pa.struct([("tags", pa.list_(pa.string())), ("counts", pa.map_(pa.string(), pa.int64()))])
    batch = pa.record_batch({"user": pa.array([{"tags": ["a"], "counts": [("x", 1)]}, None], kind)})

    found, _ = encoded(batch)

    assert found == [{"user": {"tags": ["a"], "counts": {"x": 1}}}, {"user": None}]


def test_a_data_column_is_the_whole_data() -> None:
    batch = pa.record_batch({"payload": pa.array([{"a": 1}]), "skep_name": pa.array(["n"])})

    found, _ = encoded(batch, "payload")

    assert found == [{"a": 1}]


@pytest.mark.parametrize("values", [[1.5, float("nan")], [[1.5], [float("inf")]]], ids=["plain", "nested"])
def test_a_number_that_json_has_not_makes_a_bad_row_with_its_place(values: list[Any]) -> None:
    batch = pa.record_batch({"score": pa.array(values)})

    [fine, bad_one], bad = encoded(batch)

    assert fine is not None
    assert bad_one is None
    assert bad.count == 1
    assert "data.score" in bad.examples[0].why


def test_data_over_a_megabyte_makes_a_bad_row_with_its_size() -> None:
    batch = pa.record_batch({"text": pa.array(["short", "x" * (1 << 20)])})

    found, bad = encoded(batch)

    assert found == [{"text": "short"}, None]
    assert "at most 1,048,576 are taken" in bad.examples[0].why


def test_a_dataframe_of_options_alone_has_empty_data() -> None:
    batch = pa.record_batch({"skep_id": pa.array(["a", "b"])})

    found, _ = encoded(batch)

    assert found == [{}, {}]


@pytest.mark.parametrize(
    ("names", "data_column", "told"),
    [
        (["a", "skep_prio"], None, r"column='skep_prio'.*skep_priority"),
        (["a", "skep_backoff"], None, "skep_backoff"),
        (["a"], "b", "dataColumn='b'.*one of the columns a"),
        (["a", "b"], "a", "drop b"),
    ],
)
def test_columns_that_no_row_could_have_are_refused_at_once(
    names: list[str], data_column: str | None, told: str
) -> None:
    with pytest.raises(InvalidOption, match=told):
        check_columns(names, data_column)


def test_options_of_rows_are_those_of_an_add_and_a_wrong_one_is_a_bad_row() -> None:
    batch = pa.record_batch(
        {
            "skep_id": pa.array(["a", None, "failure-1", "c"]),
            "skep_priority": pa.array(["high", None, None, "none such"]),
            "skep_run_at": pa.array([datetime(2024, 5, 17, tzinfo=UTC)] * 4, pa.timestamp("us", tz="UTC")),
        }
    )
    bad = BadRowsOfTask()

    drafts = Drafter(batch.schema, {"write": "w"}).drafts(batch, [b"{}"] * 4, lambda: 0, bad)

    assert [(draft.generated, draft.due, dict(draft.options)) for draft in drafts] == [
        (False, 1715904000000, {"write": "w", "priority": 20}),
        (True, 1715904000000, {"write": "w"}),
    ]
    assert drafts[0].id == "a"
    assert bad.count == 2
    assert "failure-1" in bad.examples[0].why
    assert "none such" in bad.examples[1].why


def test_a_series_begins_at_a_due_time_by_the_clock_it_is_given() -> None:
    batch = pa.record_batch({"skep_cron": pa.array(["0 9 * * *"])})

    [draft] = Drafter(batch.schema, {}).drafts(batch, [b"{}"], lambda: 1715904000000, BadRowsOfTask())

    assert draft.due == 1715936400000
