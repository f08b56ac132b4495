from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from skep import errors
from skep.core import outcome
from skep.core.job import JobError, decode_error
from skep.core.options import JobOptions
from skep.core.outcome import Outcome
from skep.core.record import FIRST_LETTER, pack, tail
from skep.core.retry import Backoff
from skep.handler import Running, TaskHandler
from skep.lifecycle import Run
from skep.worker.attempt import Attempt, Cause
from skep.worker.plan import Plan, Rules

NOW = 1_700_000_000_000


class Bench:
    """Where an attempt runs, as far as it can tell."""

    queue = "mail"
    worker = "w0"
    state = "pool"

    def __init__(self) -> None:
        self.notes: list[tuple[str, bytes | str, str]] = []
        self.ends: list[Outcome] = []

    def server_ms(self) -> int:
        return NOW

    def note(self, attempt: Attempt, kind: str, text: bytes | str, level: str) -> None:
        self.notes.append((kind, text, level))

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        self.ends.append(outcome)


def an_attempt(
    function: Callable[..., Any] = lambda: None,
    *,
    options: dict[str, Any] | None = None,
    failures: int = 0,
    data: bytes = b"{}",
    **running: Any,
) -> Attempt:
    """A run of a job of the task `go`, whose record has these options."""
    flags, head = tail("go", options or {})
    raw = bytes((FIRST_LETTER + flags,)) + NOW.to_bytes(6, "big") + head + data
    counts = pack({"failures": failures, "attempts": failures, "runs": failures}) if failures else None
    plan = Plan(TaskHandler("go", function, Running(**running)), {})
    rules = plan.rules.under(options or {})
    return Attempt(Bench(), "w0", Run("j1", f"w0 1 {NOW}".encode(), raw, counts), plan, rules, len(raw) - len(data))


def error_of(found: Outcome) -> JobError:
    assert isinstance(found, outcome.Failed | outcome.Retried)
    return decode_error(found.error)


@pytest.mark.parametrize(
    ("raised", "kind", "name"),
    [
        (ValueError("x"), outcome.Retried, "ValueError"),
        (SystemExit(3), outcome.Retried, "SystemExit"),
        (asyncio.CancelledError(), outcome.Retried, "CancelledError"),
        (errors.PermanentError("x"), outcome.Failed, "PermanentError"),
        (errors.Retry("later"), outcome.Retried, "Retry"),
        (errors.InvalidData("a", "of another add"), outcome.Retried, "InvalidData"),
    ],
)
def test_what_a_handler_raises_leads_where_its_type_says(raised: BaseException, kind: type[Outcome], name: str) -> None:
    found = an_attempt(options={"retries": 3}).raised(raised)

    assert isinstance(found, kind)
    assert error_of(found).type == name


def test_a_handler_that_cancels_its_job_says_why() -> None:
    found = an_attempt().raised(errors.Cancelled("no longer wanted"))

    assert found == outcome.Cancelled("no longer wanted")


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_the_last_retry_is_the_last(failures: int) -> None:
    found = an_attempt(options={"retries": 3}, failures=failures).raised(ValueError())

    assert isinstance(found, outcome.Failed) is (failures == 3)


@pytest.mark.parametrize(
    ("wish", "after"),
    [
        (errors.Retry(after=5), 5000),
        (errors.Retry(after=timedelta(seconds=5)), 5000),  # type: ignore[arg-type]
        (errors.Retry(at=NOW / 1000 + 60), 60_000),
        (errors.Retry(at=datetime.fromtimestamp(NOW / 1000 + 60, UTC)), 60_000),  # type: ignore[arg-type]
        (errors.Retry(at=1.0), 0),
    ],
)
def test_a_wish_to_run_again_is_heard_in_the_servers_time(wish: errors.Retry, after: int) -> None:
    found = an_attempt().raised(wish)

    assert isinstance(found, outcome.Retried)
    assert found.after == after


def test_a_wish_that_is_no_time_fails_the_run_and_says_why() -> None:
    found = an_attempt(options={"retries": 0}).raised(errors.Retry(after=-1))

    assert isinstance(found, outcome.Failed)
    assert "after takes seconds" in error_of(found).message


def test_a_wish_with_a_cause_records_the_cause() -> None:
    wish = errors.Retry(after=1)
    wish.__cause__ = OSError("no disk")

    assert error_of(an_attempt().raised(wish)).type == "OSError"


def test_a_wish_beyond_the_retries_fails_the_job_unless_it_does_not_count() -> None:
    counted = an_attempt(options={"retries": 0}).raised(errors.Retry(after=1))
    uncounted = an_attempt(options={"retries": 0}).raised(errors.Retry(after=1, count=False))

    assert isinstance(counted, outcome.Failed)
    assert uncounted == outcome.Postponed(1000)


@pytest.mark.parametrize(
    ("running", "raised", "final"),
    [
        ({"fail_on": (KeyError,)}, KeyError("k"), True),
        ({"fail_on": (KeyError,)}, ValueError("v"), False),
        ({"retry_on": (ConnectionError,)}, ValueError("v"), True),
        ({"retry_on": (ConnectionError,)}, ConnectionResetError("c"), False),
        ({"retry_on": (OSError,), "fail_on": (ConnectionError,)}, ConnectionResetError("c"), True),
    ],
)
def test_a_task_names_the_errors_that_are_final_or_worth_a_retry(
    running: dict[str, Any], raised: Exception, final: bool
) -> None:
    found = an_attempt(**running).raised(raised)

    assert isinstance(found, outcome.Failed) is final


def test_a_backoff_of_a_tasks_own_is_asked_with_the_failures_and_the_error() -> None:
    asked: list[tuple[int, str]] = []

    def mine(failures: int, error: BaseException) -> float:
        asked.append((failures, str(error)))
        return 100

    found = an_attempt(backoff=mine, failures=1).raised(ValueError("why"))

    assert asked == [(2, "why")]
    assert isinstance(found, outcome.Retried)
    assert found.after == 100_000


@pytest.mark.parametrize("answer", ["soon", -5, None, float("nan")])
def test_a_backoff_function_that_fails_is_replaced_by_the_default(answer: Any) -> None:
    def mine(failures: int, error: BaseException) -> Any:
        return answer

    found = an_attempt(backoff=mine).raised(ValueError())

    assert isinstance(found, outcome.Retried)
    assert found.after == 2000


def test_a_backoff_that_the_job_names_goes_before_the_function_of_its_task() -> None:
    def mine(failures: int, error: BaseException) -> float:
        return 100

    found = an_attempt(backoff=mine, options={"backoff": '["fixed",7]'}).raised(ValueError())

    assert isinstance(found, outcome.Retried)
    assert found.after == 7


@pytest.mark.parametrize(
    ("cause", "expected"),
    [(Cause.RETURN, outcome.Returned()), (Cause.CANCEL, outcome.Cancelled("")), (Cause.LOST, outcome.Returned())],
)
def test_a_run_that_was_told_to_end_ends_by_its_cause(cause: Cause, expected: Outcome) -> None:
    attempt = an_attempt()
    attempt.stop(cause)

    assert attempt.raised(RuntimeError("on the way out")) == expected


def test_a_run_over_its_time_is_a_timeout_whatever_it_raises() -> None:
    attempt = an_attempt(options={"timeout": 1500, "retries": 0})
    attempt.expire()

    found = attempt.raised(asyncio.CancelledError())

    assert isinstance(found, outcome.Failed)
    assert found.timeout
    assert (error_of(found).type, error_of(found).kind) == ("JobTimeout", "timeout")
    assert "1.5 s" in error_of(found).message


def test_the_first_cause_holds_but_a_lost_lease_beats_all() -> None:
    attempt = an_attempt(options={"timeout": 1500})

    causes = []
    for cause in (Cause.CANCEL, Cause.TIMEOUT, Cause.RETURN, Cause.LOST, Cause.CANCEL):
        attempt.stop(cause)
        causes.append(attempt.cause)

    assert causes == [Cause.CANCEL, Cause.CANCEL, Cause.CANCEL, Cause.LOST, Cause.LOST]


def test_a_run_that_ignores_one_word_to_end_is_told_of_the_next() -> None:
    told: list[Cause] = []

    class Executor:
        def interrupt(self, attempt: Attempt, cause: Cause) -> None:
            told.append(cause)

    attempt = an_attempt(options={"timeout": 1500})
    attempt.executor = Executor()

    for cause in (Cause.CANCEL, Cause.CANCEL, Cause.TIMEOUT, Cause.TIMEOUT, Cause.RETURN):
        attempt.stop(cause)

    assert told == [Cause.CANCEL, Cause.TIMEOUT, Cause.TIMEOUT, Cause.RETURN]


@pytest.mark.parametrize("data", [b'{"a":"x"}', b"{}", b"[1]", b"7", b"null", b'{"a":1,"b":2}', b"{"])
def test_data_that_does_not_fit_is_a_failure_for_good(data: bytes) -> None:
    def go(a: int) -> None: ...

    attempt = an_attempt(go, data=data)

    with pytest.raises(errors.SkepError) as caught:
        attempt.call()
    found = attempt.raised(caught.value)

    assert isinstance(found, outcome.Failed)
    assert error_of(found).kind == "permanent"


def test_a_result_goes_as_json_or_not_at_all() -> None:
    kept = an_attempt().returned({"a": 1})
    dropped = an_attempt(store_result=False).returned(object())

    assert kept == outcome.Succeeded(b'{"a":1}')
    assert dropped == outcome.Succeeded(b"null")


def test_the_end_of_a_cron_series_life_tells_when_the_next_is_due() -> None:
    options = {"cron": "0 * * * *", "tz": "UTC", "again": True, "slot": NOW}
    attempt = an_attempt(options=options)

    found = [attempt.returned(None), attempt.raised(errors.PermanentError()), attempt.raised(errors.Cancelled())]

    hour = 3_600_000
    assert [getattr(each, "next_due", None) for each in found] == [NOW - NOW % hour + hour] * 3


def test_the_due_times_that_a_long_run_misses_are_one() -> None:
    options = {"cron": "* * * * *", "tz": "UTC", "again": True, "slot": NOW - 600_000}

    found = an_attempt(options=options).returned(None)

    assert isinstance(found, outcome.Succeeded)
    assert found.next_due == NOW - NOW % 60_000 + 60_000


def test_a_series_whose_line_nobody_can_read_goes_on_later() -> None:
    found = an_attempt(options={"cron": "whenever", "again": True}).returned(None)

    assert isinstance(found, outcome.Succeeded)
    assert found.next_due == NOW + 300_000


def test_what_a_handler_sees_of_its_job() -> None:
    options = {"name": "label", "meta": '{"who":"a"}', "priority": 20}
    job = an_attempt(lambda: None, options=options, failures=2, data=b'{"x":1}').job

    seen = (
        job.id,
        job.queue,
        job.task,
        job.run,
        job.failures,
        job.attempts,
        job.name,
        job.meta,
        job.priority,
        job.data,
    )

    assert seen == ("j1", "mail", "go", 3, 2, 2, "label", {"who": "a"}, 20, {"x": 1})
    assert job.started_at == job.created_at == job.run_at == datetime.fromtimestamp(NOW / 1000, UTC)
    assert (job.state, job.worker, job.cancelled) == ("pool", "w0", False)


def test_callbacks_are_called_once_when_the_run_is_told_to_end() -> None:
    called: list[str] = []

    async def go() -> None: ...

    attempt = an_attempt(go)
    attempt.job.on_cancel(lambda: called.append("before"))
    attempt.stop(Cause.CANCEL)
    attempt.stop(Cause.LOST)
    attempt.job.on_cancel(lambda: called.append("after"))

    assert called == ["before", "after"]
    assert attempt.job.cancelled


def test_what_a_job_reports_is_checked_where_it_is_said() -> None:
    attempt = an_attempt()
    bench: Any = attempt.place

    for wrong in (object(), "x" * 20_000, float("nan")):
        with pytest.raises(errors.SkepError):
            attempt.job.report_progress(wrong)
    with pytest.raises(errors.InvalidOption):
        attempt.job.log("text", level="loud")
    attempt.job.report_progress(99, message="nearly")
    attempt.job.log("é" * 8000)

    assert [note[0] for note in bench.notes] == ["p", "l", "l"]
    assert bench.notes[0][1] == msgspec.json.encode(99)
    assert len(bench.notes[2][1].encode()) <= 8192


@pytest.mark.parametrize(
    ("terms", "rules"),
    [
        ({}, Rules()),
        ({"retries": 0}, Rules(retries=0)),
        ({"timeout": 1500, "max_logs": 5}, Rules(timeout=1.5, max_logs=5)),
        ({"backoff": '["fixed",100]'}, Rules(backoff=Backoff.fixed(0.1))),
    ],
)
def test_what_is_not_said_is_as_it_was(terms: dict[str, Any], rules: Rules) -> None:
    assert Rules().under(terms) == rules


def test_a_job_may_have_no_timeout_though_its_task_has_one() -> None:
    of_task = Rules().under(JobOptions(timeout=30).terms)

    assert of_task.timeout == 30
    assert of_task.under(JobOptions(timeout=None).terms).timeout is None


def test_judging_a_failure_never_fails_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = an_attempt(options={"retries": 3})
    monkeypatch.setattr(attempt.place, "server_ms", lambda: 1 // 0)

    found = attempt.raised(errors.Retry(at=time.time()))

    assert isinstance(found, outcome.Failed)
    assert error_of(found).kind == "permanent"
