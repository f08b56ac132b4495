"""How one run ended, as types: only what can happen can be said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never


@dataclass(slots=True)  # not frozen: most runs end so, and it would take them twice as long to say it
class Succeeded:
    """The handler returned. `result` is JSON. `next_due`: of a cron series, when it runs next (ms).

    `keep`: how long the task keeps its jobs (ms; True: for ever), where the job does not say it itself.
    """

    result: bytes
    next_due: int | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Retried:
    """It failed and runs again `after` so many milliseconds. `error` is JSON."""

    after: int
    error: bytes
    timeout: bool = False


@dataclass(frozen=True, slots=True)
class Postponed:
    """The handler passed its job back for so many milliseconds, which is neither failure nor attempt."""

    after: int


@dataclass(frozen=True, slots=True)
class Failed:
    """It failed for good."""

    error: bytes
    timeout: bool = False
    next_due: int | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler cancelled its job, or ended because it was asked to."""

    reason: str = ""
    next_due: int | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Stalled:
    """Its process died, or never answered again. `next_due`: as of a success, should this stall be its last."""

    error: bytes
    next_due: int | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """A stopping worker hands it back, which uses nothing up."""


Outcome = Succeeded | Retried | Postponed | Failed | Cancelled | Stalled | Returned


def kept(outcome: Outcome, keep: int) -> Outcome:
    """The same end, of a job that is to be kept so long if that ends its life."""
    return replace(outcome, keep=keep) if isinstance(outcome, Succeeded | Failed | Cancelled) else outcome


def words(outcome: Outcome) -> tuple[str, int | str, bytes | str]:
    """How the script is told: its word, a time, a text."""
    match outcome:
        case Succeeded(result, None, None):
            return "succeeded", "", result
        case Succeeded(result, next_due, keep):
            return _kept("ended", keep), _or_empty(next_due), result
        case Retried(after, error, timeout):
            return _timed("retried", timeout), after, error
        case Postponed(after):
            return "postponed", after, ""
        case Failed(error, timeout, next_due, keep):
            return _kept(_timed("failed", timeout), keep), _or_empty(next_due), error
        case Cancelled(reason, next_due, keep):
            return _kept("cancelled", keep), _or_empty(next_due), reason
        case Stalled(error, next_due):
            return "stalled", _or_empty(next_due), error
        case Returned():
            return "returned", "", ""
        case _:
            assert_never(outcome)


def _timed(word: str, timeout: bool) -> str:
    return f"timeout:{word}" if timeout else word


def _kept(word: str, keep: int | None) -> str:
    return word if keep is None else f"keep:{'true' if keep is True else int(keep)}:{word}"


def _or_empty(value: int | None) -> int | str:
    return "" if value is None else value
