"""What a worker knows of a task before any of its jobs has come: its handler, and the rules that they get."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from skep.core.duration import to_ms
from skep.core.retry import Backoff, Chooser, RetryPolicy
from skep.handler import Handler
from skep.worker.executors.wire import Source

log = logging.getLogger("skep.worker")

MOST_LOGS = 1000
read_backoff = lru_cache(maxsize=1024)(Backoff.read)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a run may take its time and fail: settled when it is claimed. The job's word goes first, then its task's, its
    queue's, and what is built in. `timeout` is in seconds, `keep` in ms; `chooser` is a task's own back-off.
    """

    retries: int = RetryPolicy().retries
    backoff: Backoff = RetryPolicy().backoff
    chooser: Chooser | None = None
    timeout: float | None = None
    max_logs: int = MOST_LOGS
    keep: int | None = None

    def under(self, terms: Mapping[str, Any]) -> Rules:
        """These rules where `terms`, as a record or `JobOptions` says them, do not know better."""
        own: dict[str, Any] = {}
        if "retries" in terms:
            own["retries"] = int(terms["retries"])
        if "backoff" in terms:
            own |= {"backoff": read_backoff(terms["backoff"]), "chooser": None}
        if "timeout" in terms:
            own["timeout"] = terms["timeout"] / 1000 if terms["timeout"] else None
        if "max_logs" in terms:
            own["max_logs"] = int(terms["max_logs"])
        if "keep" in terms:
            own["keep"] = None if terms["keep"] is False else terms["keep"]
        return replace(self, **own) if own else self

    def chosen_ms(self, failures: int, error: BaseException) -> int:
        """The wait that the task's own function chooses; the rules' back-off where it cannot."""
        if self.chooser is not None:
            try:
                return to_ms("backoff", self.chooser(failures, error))
            except Exception:  # a user's function; the failure that it was asked about must not be lost with it
                log.exception("the back-off function of a task failed; the default back-off is used")
        return self.backoff.delay_ms(failures, 0.0)


class Gate(Protocol):
    """What lets only so many runs of a task begin."""

    def enter(self, attempt: Any) -> None:
        """Begins it, or lets it wait."""
        ...

    def leave(self, attempt: Any) -> None:
        """A run is over."""
        ...


class Plan:
    """A handler, ready to be called for one job after the other."""

    __slots__ = (
        "_chooser",
        "_fail_on",
        "_own_terms",
        "_retry_on",
        "bind",
        "encode",
        "function",
        "gate",
        "is_async",
        "rules",
        "source",
        "wants_job",
    )

    def __init__(self, handler: Handler, queue_terms: Mapping[str, Any]) -> None:
        self.function = handler.function
        self.bind = handler.binder()
        self.encode = handler.encode
        self.is_async = handler.is_async
        self.wants_job = handler.wants_job
        self.gate: Gate | None = None
        self.source: Source | None = None  # where it runs in a child process: where that finds it
        self._retry_on = handler.retry_on
        self._fail_on = handler.fail_on
        self._own_terms = handler.options.terms
        self._chooser = handler.backoff
        self.rules = self.rules_under(queue_terms)

    def rules_under(self, queue_terms: Mapping[str, Any]) -> Rules:
        """What its task says, and its queue where the task says nothing."""
        rules = Rules().under(queue_terms).under(self._own_terms)
        return rules if self._chooser is None else replace(rules, chooser=self._chooser)

    def is_final(self, error: BaseException) -> bool:
        """Whether its task says that this error is not worth a retry."""
        wanted = not self._retry_on or isinstance(error, self._retry_on)
        return not wanted or isinstance(error, self._fail_on)
