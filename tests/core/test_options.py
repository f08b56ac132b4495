from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from skep.core.options import JobOptions, JobSpec, Update
from skep.core.retry import Backoff
from skep.core.terms import Priority, merged
from skep.core.unset import UNSET
from skep.errors import InvalidOption, ReservedId, SkepError

NAN, INF = float("nan"), float("inf")
AT = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, {}),
        ({"retries": 0}, {"retries": 0}),
        ({"retries": None}, {"retries": 0}),
        ({"timeout": 1.5}, {"timeout": 1500}),
        ({"timeout": dt.timedelta(minutes=1)}, {"timeout": 60_000}),
        ({"timeout": None}, {"timeout": False}),
        ({"backoff": Backoff.fixed(2)}, {"backoff": '["fixed",2000]'}),
        ({"backoff": None}, {"backoff": '["none"]'}),
        ({"keep": True}, {"keep": True}),
        ({"keep": False}, {"keep": 0}),
        ({"keep": 0}, {"keep": 0}),
        ({"keep": 60}, {"keep": 60_000}),
        ({"keep": None}, {"keep": False}),
        ({"priority": "high"}, {"priority": 20}),
        ({"priority": 60}, {"priority": 60}),
        ({"priority": Priority.LOW}, {"priority": 50}),
        ({"priority": None}, {"priority": 40}),
        ({"name": "n"}, {"name": "n"}),
        ({"name": None}, {"name": False}),
        ({"meta": {"a": [1]}}, {"meta": '{"a":[1]}'}),
        ({"meta": None}, {"meta": False}),
        ({"delay": 0.0004}, {"delay": 1}),
        ({"run_at": AT}, {"due": 1893542400000}),
        ({"run_at": 1893542400.5}, {"due": 1893542400500}),
        ({"expires": 60}, {"lasts": 60_000}),
        ({"expires": AT}, {"expires": 1893542400000, "lasts": False}),
        ({"expires": 1893542400}, {"expires": 1893542400000, "lasts": False}),
        ({"expires": None}, {"expires": False, "lasts": False}),
        ({"repeat": True}, {"again": True, "cron": False, "tz": False}),
        ({"repeat": 3, "every": 5}, {"again": 3, "every": 5000, "cron": False, "tz": False}),
        ({"repeat": None}, {"again": False}),
        ({"repeat": 0}, {"again": False}),
        ({"every": 5}, {"every": 5000}),
        ({"cron": "0 9 * * *"}, {"cron": "0 9 * * *", "tz": "UTC", "again": True, "every": False}),
        (
            {"cron": "0 9 * * *", "tz": "Europe/Paris", "repeat": 2},
            {"cron": "0 9 * * *", "tz": "Europe/Paris", "again": 2, "every": False},
        ),
        ({"cron": None}, {"cron": False, "again": False}),
        ({"id": "x", "task": "t", "on_conflict": "ignore"}, {"id": "x", "task": "t", "conflict": "ignore"}),
    ],
)
def test_options_are_told_in_the_words_of_the_server(said: dict[str, Any], told: dict[str, Any]) -> None:
    assert JobOptions(**said).terms == told


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": -1},
        {"timeout": 0},
        {"timeout": "soon"},
        {"timeout": True},
        {"retries": "x"},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"repeat": "often"},
        {"repeat": -10},
        {"repeat": 2, "every": -10},
        {"repeat": 2, "every": "x"},
        {"every": 0},
        {"keep": -1},
        {"keep": "long"},
        {"max_stalls": -1},
        {"max_logs": -1},
        {"name": []},
        {"name": "x" * 201},
        {"delay": NAN},
        {"delay": INF},
        {"delay": -1},
        {"delay": 1e12},
        {"run_at": "wobble"},
        {"run_at": NAN},
        {"run_at": -1},
        {"run_at": 1e15},
        {"run_at": dt.datetime(2030, 1, 2)},  # noqa: DTZ001 - nobody knows which instant that is
        {"run_at": AT, "delay": 5},
        {"expires": "later"},
        {"expires": NAN},
        {"expires": dt.datetime(2030, 1, 2)},  # noqa: DTZ001 - the same
        {"meta": object()},
        {"meta": NAN},
        {"meta": "x" * 20_000},
        {"priority": 35},
        {"priority": "urgent"},
        {"priority": True},
        {"priority": 20.0},
        {"id": 5},
        {"id": ""},
        {"task": 7},
        {"backoff": "wow"},
        {"backoff": len},
        {"cron": "nonsense"},
        {"cron": 5},
        {"cron": "0 9 * * *", "tz": "Mars/Olympus"},
        {"cron": "0 9 * * *", "every": 5},
        {"tz": "Europe/Paris"},
        {"on_conflict": "explode"},
        {"on_conflict": True},
    ],
)
def test_wrong_values_are_refused_with_what_would_be_right(wrong: dict[str, Any]) -> None:
    with pytest.raises(SkepError, match=r"takes|is not|cannot be written|bytes"):
        JobOptions(**wrong)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        JobOptions(colour="red")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_ids_of_the_queues_own_jobs_are_refused() -> None:
    with pytest.raises(ReservedId):
        JobOptions(id="cron:nightly")


def test_what_is_not_said_is_unset_and_not_shown() -> None:
    options = JobOptions(retries=2, name=None)

    assert options.timeout is UNSET
    assert not options.timeout
    assert repr(options) == "JobOptions(name=None, retries=2)"
    assert options == JobOptions(name=None, retries=2)


def test_a_spec_is_data_and_options() -> None:
    spec = JobSpec({"x": 1}, id="a", retries=2)

    assert spec.data == {"x": 1}
    assert spec.terms == {"id": "a", "retries": 2}


@pytest.mark.parametrize(
    ("call", "task", "queue", "together"),
    [
        ({"retries": 1}, {"retries": 2}, {"retries": 3}, {"retries": 1}),
        ({}, {"retries": 2}, {"retries": 3, "name": "n"}, {"retries": 2, "name": "n"}),
        ({"run_at": AT}, {"delay": 5}, {}, {"due": 1893542400000}),
        ({"delay": None}, {"delay": 5}, {}, {"delay": None}),
        ({"expires": 5}, {"expires": AT}, {}, {"lasts": 5000}),
        ({"repeat": 2}, {"cron": "* * * * *"}, {}, {"again": 2, "cron": False, "tz": False}),
        ({"timeout": None}, {"timeout": 5}, {}, {"timeout": False}),
    ],
)
def test_the_call_goes_before_the_task_and_the_task_before_the_queue(
    call: dict[str, Any], task: dict[str, Any], queue: dict[str, Any], together: dict[str, Any]
) -> None:
    layers = [JobOptions(**said).terms for said in (call, task, queue)]

    assert merged(*layers) == together


@pytest.mark.parametrize(
    "wrong", [{"run_at": "if_never"}, {"data": 1}, {"counts": "x"}, {"options": {"colour"}}, {"options": 1}]
)
def test_an_update_that_says_nothing_known_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Update(**wrong)


def test_an_update_names_options_as_the_server_does() -> None:
    update = Update(options={"expires", "retries"})

    assert update.told_options == frozenset({"expires", "lasts", "retries"})
    assert Update().told_options is True
