from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skep.core.job import JobError, decode_error
from skep.core.outcome import Failed, Retried
from skep.core.retry import Backoff, RetryPolicy, after_failure
from skep.errors import InvalidOption, SkepError

ERROR = JobError(type="ValueError", message="no disk")
SECOND = 1000

backoffs = some.one_of(
    some.just(Backoff.none()),
    some.builds(Backoff.fixed, some.floats(0, 1e6)),
    some.builds(Backoff.linear, some.floats(0, 1e6)),
    some.builds(Backoff.exponential, some.floats(0, 100), some.floats(100, 1e6), some.floats(1, 10), some.floats(0, 1)),
)


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        (Backoff.none(), [0, 0, 0, 0]),
        (Backoff.fixed(60), [60, 60, 60, 60]),
        (Backoff.fixed(timedelta(minutes=1)), [60, 60, 60, 60]),
        (Backoff.linear(60), [60, 120, 180, 240]),
        (Backoff.exponential(40, 100), [40, 80, 100, 100]),
        (Backoff.exponential(1, 1000, factor=10), [1, 10, 100, 1000]),
        (Backoff.exponential(5, 5), [5, 5, 5, 5]),
    ],
)
def test_each_backoff_waits_as_it_says_after_each_failure(backoff: Backoff, seconds: list[int]) -> None:
    waits = [backoff.delay_ms(failures, 0.0) for failures in (1, 2, 3, 4)]

    assert waits == [second * SECOND for second in seconds]


def test_an_exponential_backoff_is_shortened_by_its_jitter_at_most() -> None:
    backoff = Backoff.exponential(10, 100, jitter=0.5)

    assert backoff.delay_ms(1, 0.0) == 10 * SECOND
    assert backoff.delay_ms(1, 0.5) == 7.5 * SECOND
    assert backoff.delay_ms(1, 1.0) == 5 * SECOND


@given(backoffs, some.integers(1, 10**6), some.floats(0, 1))
def test_no_number_of_failures_makes_a_wait_below_zero_or_above_its_maximum(
    backoff: Backoff, failures: int, luck: float
) -> None:
    wait = backoff.delay_ms(failures, luck)

    assert isinstance(wait, int)
    assert wait >= 0
    assert backoff.kind != "exponential" or wait <= backoff.most


@given(backoffs)
def test_a_backoff_reads_back_as_it_was_written(backoff: Backoff) -> None:
    assert Backoff.read(backoff.to_json()) == backoff


def test_backoffs_are_written_as_other_languages_read_them() -> None:
    written = [
        Backoff.none().to_json(),
        Backoff.fixed(1.5).to_json(),
        Backoff.linear(3).to_json(),
        Backoff.exponential(2, 300, jitter=0).to_json(),
    ]

    assert written == ['["none"]', '["fixed",1500]', '["linear",3000]', '["exponential",2000,300000,2.0,0.0]']


def test_a_backoff_that_the_server_wrote_is_read() -> None:
    assert Backoff.read('["exponential",10000,900000,2,0]') == Backoff.exponential(10, 900, jitter=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backoff.fixed(-1),
        lambda: Backoff.linear(-1),
        lambda: Backoff.exponential(-1, 5),
        lambda: Backoff.exponential(10, 5),
        lambda: Backoff.exponential(1, 5, factor=0.5),
        lambda: Backoff.exponential(1, 5, jitter=1.5),
        lambda: Backoff.fixed(float("nan")),
        lambda: Backoff.fixed(float("inf")),
        lambda: Backoff.fixed(True),
        lambda: Backoff.fixed(timedelta(seconds=-1)),
    ],
)
def test_a_wrong_backoff_is_refused_when_it_is_made(make: Any) -> None:
    with pytest.raises(InvalidOption):
        make()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "wow", '["fixed"]', '["fixed","a"]', '["exponential",1,2]', '["none",1]', "null"]
)
def test_a_text_that_is_no_backoff_is_refused(text: str) -> None:
    with pytest.raises(SkepError):
        Backoff.read(text)


@pytest.mark.parametrize(
    ("retries", "failures", "ends"),
    [(0, 1, True), (1, 1, False), (1, 2, True), (10, 10, False), (10, 11, True), (3, 99, True)],
)
def test_a_job_fails_for_good_once_it_has_failed_more_often_than_it_has_retries(
    retries: int, failures: int, ends: bool
) -> None:
    outcome = after_failure(RetryPolicy(retries, Backoff.none()), failures, ERROR, luck=0.0)

    assert isinstance(outcome, Failed) is ends


def test_a_failure_that_is_retried_tells_its_wait_and_its_error() -> None:
    outcome = after_failure(RetryPolicy(3, Backoff.fixed(60)), 1, ERROR, luck=0.0)

    assert isinstance(outcome, Retried)
    assert outcome.after == 60 * SECOND
    assert decode_error(outcome.error) == ERROR
    assert not outcome.timeout


def test_a_permanent_error_ends_the_job_whatever_is_left() -> None:
    error = JobError(type="PermanentError", kind="permanent")

    outcome = after_failure(RetryPolicy(10, Backoff.none()), 1, error, luck=0.0, next_due=5)

    assert isinstance(outcome, Failed)
    assert outcome.next_due == 5


@pytest.mark.parametrize("retries", [0, 5])
def test_a_timeout_is_told_as_one_whether_it_is_retried_or_not(retries: int) -> None:
    error = JobError(type="JobTimeout", kind="timeout")

    outcome = after_failure(RetryPolicy(retries, Backoff.none()), 1, error, luck=0.0)

    assert outcome.timeout
