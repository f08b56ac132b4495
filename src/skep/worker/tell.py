"""What is told in this process of runs that have ended: a line in the log, and the worker's hooks."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from skep.core.job import decode_error
from skep.core.outcome import Cancelled, Failed, Outcome, Postponed, Retried, Returned, Stalled, Succeeded
from skep.worker.attempt import Attempt, Cause
from skep.worker.hooks import Hooks, WorkerEvent

log = logging.getLogger("skep.worker")

WORDS: dict[type[Outcome], str] = {
    Succeeded: "succeeded",
    Retried: "retrying",
    Postponed: "retrying",
    Failed: "failed",
    Cancelled: "cancelled",
    Stalled: "stalled",
    Returned: "returned",
}


class Teller:
    """Tells of ends that the server has taken."""

    def __init__(self, hooks: Hooks, level: int) -> None:
        self._hooks = hooks
        self._level = level

    def ended(self, ends: Sequence[tuple[Attempt, Outcome]], said: Sequence[bool]) -> None:
        """These ends were answered. What was refused is not told: it is another worker's run by now."""
        logs = log.isEnabledFor(self._level)
        quiet = not logs and "succeeded" not in self._hooks
        for (attempt, outcome), taken in zip(ends, said, strict=False):
            if taken and not (quiet and type(outcome) is Succeeded):
                kind = "cancelled" if _was_stopped(attempt, outcome) else WORDS[type(outcome)]
                if isinstance(outcome, Failed) and kind == "failed":
                    self._log_failure(attempt, outcome)
                elif logs:
                    log.log(self._level, "%s: job %r%s %s", attempt.queue, attempt.id, _of_task(attempt), kind)
                if kind in self._hooks:
                    self._hooks.tell(_event(kind, attempt, outcome))

    def _log_failure(self, attempt: Attempt, outcome: Failed) -> None:
        error = decode_error(outcome.error)
        what = (attempt.queue, attempt.id, _of_task(attempt), error.type, error.message)
        log.error("%s: job %r%s failed for good: %s: %s", *what, exc_info=attempt.error)


def _was_stopped(attempt: Attempt, outcome: Outcome) -> bool:
    """A job that was cancelled while it ran is cancelled, however its run ends, but for success."""
    return attempt.cause is Cause.CANCEL and type(outcome) is not Succeeded


def _of_task(attempt: Attempt) -> str:
    task = attempt.head.task
    return f" ({task})" if task else ""


def _event(kind: str, attempt: Attempt, outcome: Outcome) -> WorkerEvent:
    value = outcome.result if isinstance(outcome, Succeeded) else None
    error = decode_error(outcome.error) if isinstance(outcome, Failed | Retried) else None
    return WorkerEvent(kind, attempt.queue, attempt.job, value, error)
