from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skep.core.schedule import check_cron, next_due
from skep.errors import InvalidOption

HOUR = 3_600_000


def due_times(cron: str, tz: str, after: str, count: int) -> list[str]:
    """Due times as the clocks there show them, with their distance from UTC."""
    zone, told = ZoneInfo(tz), []
    ms = int(datetime.fromisoformat(after).timestamp() * 1000)
    for _ in range(count):
        ms = next_due(cron, tz, ms)
        told.append(datetime.fromtimestamp(ms / 1000, zone).strftime("%m-%d %H:%M%z"))
    return told


def test_a_line_is_due_on_the_clocks_of_its_zone() -> None:
    found = due_times("0 9 * * mon-fri", "Europe/Paris", "2026-07-17T00:00+02:00", 3)

    assert found == ["07-17 09:00+0200", "07-20 09:00+0200", "07-21 09:00+0200"]


def test_the_next_due_time_lies_behind_a_due_time_itself() -> None:
    found = due_times("*/15 * * * *", "UTC", "2026-01-01T00:15+00:00", 2)

    assert found == ["01-01 00:30+0000", "01-01 00:45+0000"]


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/30 2 * * *", "0,15,45 2 * * *"])
def test_due_times_that_the_clock_skips_are_one_at_the_first_instant_after_it(cron: str) -> None:
    found = due_times(cron, "Europe/Paris", "2025-03-29T12:00+01:00", 1)

    assert found == ["03-30 03:00+0200"]


def test_a_skipped_due_time_and_one_at_the_end_of_the_gap_are_one() -> None:
    found = due_times("0 2-4 * * *", "Europe/Paris", "2025-03-30T00:00+01:00", 3)

    assert found == ["03-30 03:00+0200", "03-30 04:00+0200", "03-31 02:00+0200"]


def test_a_due_time_that_the_clock_shows_twice_is_due_once() -> None:
    found = due_times("30 2 * * *", "Europe/Paris", "2025-10-25T12:00+02:00", 2)

    assert found == ["10-26 02:30+0200", "10-27 02:30+0100"]


def test_asked_in_the_hour_that_comes_again_a_due_time_of_its_first_showing_is_over() -> None:
    found = due_times("30 2 * * *", "Europe/Paris", "2025-10-26T02:10+01:00", 1)

    assert found == ["10-27 02:30+0100"]


def test_a_line_for_every_hour_goes_on_through_the_hour_that_comes_again() -> None:
    found = due_times("0 * * * *", "Europe/Paris", "2025-10-26T01:30+02:00", 4)

    assert found == ["10-26 02:00+0200", "10-26 02:00+0100", "10-26 03:00+0100", "10-26 04:00+0100"]


def test_a_line_for_every_hour_leaves_nothing_out_where_the_clock_skips_one() -> None:
    found = due_times("*/30 0-23 * * *", "Europe/Paris", "2025-03-30T01:10+01:00", 3)

    assert found == ["03-30 01:30+0100", "03-30 03:00+0200", "03-30 03:30+0200"]


def test_a_midnight_that_there_is_not_is_the_first_instant_of_its_day() -> None:
    found = due_times("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00-03:00", 2)

    assert found == ["11-04 01:00-0200", "11-05 00:00-0200"]


def test_a_whole_day_that_a_zone_has_left_out_is_due_at_the_next_midnight() -> None:
    found = due_times("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00-10:00", 3)

    assert found == ["12-29 12:00-1000", "12-31 00:00+1400", "12-31 12:00+1400"]


@given(
    some.sampled_from(["30 2 * * *", "*/20 * * * *", "0 1-3 * * sun", "15 0,12 1 * *", "59 23 * 10 *", "* 2 * * *"]),
    some.sampled_from(
        ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo"]
    ),
    some.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 - hypothesis draws naive ones
)
def test_due_times_only_go_forward_and_none_lies_between(cron: str, tz: str, moment: datetime) -> None:
    after = int(moment.replace(tzinfo=UTC).timestamp()) * 1000

    first = next_due(cron, tz, after)
    second = next_due(cron, tz, first)

    assert after < first < second
    assert next_due(cron, tz, first - 1) == first
    assert next_due(cron, tz, (after + first) // 2) == first


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "* * * * * *",
        "61 * * * *",
        "0 25 * * *",
        "0 0 32 * *",
        "0 0 30 2 *",
        "0 0 * * 8",
        "often",
        5,
        None,
    ],
)
def test_a_line_that_is_never_due_is_refused_with_one_that_is(cron: Any) -> None:
    with pytest.raises(InvalidOption, match="such as '0 9"):
        check_cron(cron)


@pytest.mark.parametrize("tz", ["", "Mars/Olympus", "Europe", "../etc/passwd", "a\0b", 5, None, ["UTC"]])
def test_a_zone_that_there_is_not_is_refused_with_one_that_there_is(tz: Any) -> None:
    with pytest.raises(InvalidOption, match="such as 'Europe/Paris'"):
        check_cron("0 9 * * *", tz)


def test_a_line_with_names_and_steps_is_taken() -> None:
    check_cron("*/5 8-18/2 1,15,L jan-mar MON#1", "America/New_York")
