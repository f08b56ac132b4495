from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DecimalType, StructField, StructType

from skep.errors import InvalidOption
from skep.spark.schema import EVENT, JOB, METRIC, RUN, arrow_schema

# What stands in lakes for years: nullable columns may be added, at the end of a list; nothing else may change.
PINNED = {
    "EVENT": (
        "seq bigint not null, at timestamp not null, type string not null, queue string not null, job "
        "string, life bigint, run int, task string, name string, worker string, by string, status string, "
        "due timestamp, created timestamp, began timestamp, started timestamp, attempts int, failures "
        "int, stalls int, timeouts int, reason string, data string, result string, meta string, "
        "error_type string, error_message string, error_kind string, error_traceback string, next_run "
        "timestamp, write string, left_out boolean, details string"
    ),
    "RUN": (
        "queue string, job string, life bigint, run int, seq bigint, day date, task string, name string, "
        "worker string, outcome string, created timestamp, due timestamp, started timestamp, ended "
        "timestamp, waited double, ran double, attempts int, failures int, stalls int, timeouts int, "
        "reason string, result string, left_out boolean, error_type string, error_message string, "
        "error_kind string, error_traceback string, meta string, write string"
    ),
    "JOB": (
        "queue string, job string, life bigint, seq bigint, day date, task string, name string, status "
        "string, created timestamp, due timestamp, began timestamp, started timestamp, ended timestamp, "
        "waited double, ran double, attempts int, failures int, stalls int, timeouts int, reason string, "
        "result string, left_out boolean, error_type string, error_message string, error_kind string, "
        "error_traceback string, meta string, write string, next_run timestamp"
    ),
    "METRIC": (
        "queue string, task string, minute timestamp, runs bigint, succeeded bigint, retrying bigint, "
        "failed bigint, cancelled bigint, stalled bigint, returned bigint, timeouts bigint, failures "
        "map<string,bigint>, waited_p50 double, waited_p95 double, waited_p99 double, ran_p50 double, "
        "ran_p95 double, ran_p99 double"
    ),
}


def described(schema: StructType) -> str:
    return ", ".join(
        f"{each.name} {each.dataType.simpleString()}{'' if each.nullable else ' not null'}" for each in schema.fields
    )


@pytest.mark.parametrize(("name", "schema"), [("EVENT", EVENT), ("RUN", RUN), ("JOB", JOB), ("METRIC", METRIC)])
def test_the_columns_of_each_table_are_those_that_lakes_have(name: str, schema: StructType) -> None:
    columns = described(schema)

    assert columns == PINNED[name]


@pytest.mark.parametrize("schema", [EVENT, RUN, JOB], ids=["events", "runs", "jobs"])
def test_the_arrow_schema_is_the_one_that_spark_demands_of_a_source(schema: StructType) -> None:
    ours = arrow_schema(schema)

    assert ours.equals(to_arrow_schema(schema, timezone="UTC"))


def test_a_column_of_a_type_that_no_table_has_is_refused_by_name() -> None:
    asked = StructType([StructField("price", DecimalType(10, 2))])

    with pytest.raises(InvalidOption, match=r"column price='decimal\(10,2\)'.* one of string, int, bigint"):
        arrow_schema(asked)
