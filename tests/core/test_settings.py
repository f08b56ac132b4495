from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from skep.core.settings import FOR_EVER_MS, Retention, Settings, told
from skep.core.unset import UNSET
from skep.errors import InvalidOption


def test_what_is_told_is_read_again() -> None:
    retention = Retention(succeeded=0, failed=None, cancelled=1.5, max_succeeded=5, max_failed=None)

    kept = {name: str(value) for name, value in told(retention, {"max_waiting": 7, "event_data": False}).items()}

    assert Settings.read(kept) == Settings(retention=retention, max_waiting=7, event_data=False)


def test_a_queue_of_which_nothing_was_said_has_the_settings_that_are_built_in() -> None:
    assert Settings.read({"seq": "5"}) == Settings()


def test_durations_are_told_in_milliseconds_and_none_is_for_ever() -> None:
    said = Retention(succeeded=dt.timedelta(minutes=1), failed=None, max_cancelled=None).settings()

    assert (said["keep_succeeded"], said["keep_failed"], said["max_cancelled"]) == (60_000, FOR_EVER_MS, FOR_EVER_MS)


def test_none_takes_a_setting_back() -> None:
    said = told(None, {"max_waiting": None, "history": None})

    assert set(said.values()) == {""}
    assert {"keep_failed", "max_waiting", "history"} <= said.keys()
    assert told(UNSET, {}) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_waiting": -1},
        {"max_waiting": "x"},
        {"max_events": 1.5},
        {"event_data": 1},
        {"history": "some"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        told(UNSET, wrong)


@pytest.mark.parametrize("wrong", [{"succeeded": -1}, {"failed": "x"}, {"max_failed": -1}, {"max_cancelled": True}])
def test_a_wrong_retention_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Retention(**wrong)


def test_an_unknown_setting_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        told(UNSET, {"colour": 1})
