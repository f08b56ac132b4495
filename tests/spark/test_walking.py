"""Jobs without Spark: the walk through a queue, and what shortens it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from skep import Queue
from skep.spark import walking
from skep.spark.schema import LIVE, arrow_schema
from skep.spark.walking import JobsOf, Picked
from skep.store.sync import Store
from tests.support.hand import Hand


def rows(store: Store, picked: Picked | None = None, columns: str = "") -> list[dict[str, Any]]:
    """What a task makes of the queue."""
    schema = StructType([LIVE[name] for name in columns.split()]) if columns else LIVE
    part = JobsOf("mail", picked=picked or Picked())
    return [row for batch in walking.read(store, part, arrow_schema(schema)) for row in batch.to_pylist()]


def one_of_each(mail: Queue, url: str) -> dict[str, str]:
    """A job in every status, its ids by status."""
    hand = Hand("mail", url)
    ids: dict[str, str] = {}
    for status, end in (
        ("succeeded", hand.succeed),
        ("failed", hand.fail),
        ("cancelled", hand.cancel),
        ("retrying", hand.retry),
    ):
        mail.add({"to": status}, id=status)
        ids[status] = end()
    ids["active"] = mail.add({"to": "active"}, id="active").id
    hand.take()
    mail.add({"to": "blocked"}, id="active")
    ids["held"] = mail.add(None, name="label").id
    mail.hold(ids["held"], reason="later")
    ids["scheduled"] = mail.add({}, delay=3600, priority="high", meta={"m": 1}).id
    ids["waiting"] = mail.add([1, "\u00e9"], name="label").id
    hand.close()
    return ids


def test_a_job_in_every_status_is_a_row_with_what_the_job_tells(mail: Queue, skep_url: str, store: Store) -> None:
    ids = one_of_each(mail, skep_url)

    found = {row["status"]: row for row in rows(store)}

    assert set(found) == {*ids, "blocked"}
    for status, id in ids.items():
        job = mail.get(id)
        assert job is not None
        row = found[status]
        told = {name: getattr(job, name) for name in LIVE.names if hasattr(job, name) and name != "result"}
        told |= {"data": row["data"], "meta": row["meta"], "status": str(job.status), "priority": int(job.priority)}
        assert {name: row[name] for name in told} == told
    assert found["blocked"]["id"] == "active"
    assert found["succeeded"]["result"] == "null"
    assert found["failed"]["error_message"] == "no"
    assert found["waiting"]["data"] == '[1,"\u00e9"]'
    assert found["scheduled"]["meta"] == '{"m":1}'


def test_every_job_that_stays_put_is_seen_once_in_a_large_queue(mail: Queue, store: Store) -> None:
    mail.add_many(range(3000))

    found = rows(store, columns="data")

    assert sorted(int(row["data"]) for row in found) == list(range(3000))


def test_large_jobs_come_in_smaller_slices(mail: Queue, store: Store) -> None:
    mail.add_many(["x" * 50_000 for _ in range(600)])

    found = rows(store, columns="id data")

    assert len({row["id"] for row in found}) == 600


def test_an_empty_queue_has_no_rows(store: Store) -> None:
    found = rows(store)

    assert found == []


def test_without_the_columns_for_it_no_data_leaves_the_server(mail: Queue, store: Store) -> None:
    mail.add("x" * 100_000)

    [walked] = walking._walk(store, JobsOf("mail"), whole=False)

    assert sum(map(len, walked.records)) < 50
    assert rows(store, columns="status attempts") == [{"status": "waiting", "attempts": 0}]


@pytest.mark.parametrize(
    ("picked", "statuses"),
    [
        ({"statuses": {"failed"}}, {"failed"}),
        ({"statuses": {"failed", "held"}}, {"failed", "held"}),
        ({"statuses": {"waiting"}}, {"waiting"}),
        ({"statuses": {"blocked"}}, {"blocked"}),
        ({"names": {"label"}}, {"held", "waiting"}),
        ({"names": {"label"}, "statuses": {"held"}}, {"held"}),
        ({"ids": {"failed", "no such job"}}, {"failed"}),
        ({"ids": {"failed"}, "statuses": {"held"}}, set[str]()),
    ],
)
def test_what_is_picked_is_fetched_and_nothing_else(
    picked: dict[str, set[str]], statuses: set[str], mail: Queue, skep_url: str, store: Store
) -> None:
    one_of_each(mail, skep_url)

    found = rows(store, Picked(**{name: frozenset(values) for name, values in picked.items()}))

    assert {row["status"] for row in found} == statuses
