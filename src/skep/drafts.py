"""From what is said of a job to a draft of it: who says what, in the server's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skep.core.ids import new_id
from skep.core.job import JobRecord
from skep.core.options import Update
from skep.core.record import Record
from skep.core.schedule import next_due
from skep.core.states import JobState
from skep.core.terms import FROM_THE_RUN_ON, Terms, merged
from skep.lifecycle import Conflict, Draft, Flags

NOT_OPTIONS = frozenset({"id", "task", "delay", "due", "conflict"})
NORMAL = 40


@dataclass(frozen=True, slots=True)
class Template:
    """All that is said of a job before its id and its data."""

    like: Draft
    id: str | None = None
    is_plain: bool = True
    is_cron: bool = False

    @classmethod
    def of(cls, *layers: Terms) -> Template:
        """What these say together, the last word first."""
        said = merged(*layers)
        id: str | None = said.get("id")
        like = Draft(
            id="",
            data=b"",
            task=said.get("task") or "",
            delay=said.get("delay"),
            due=said.get("due"),
            options=_options(said, fresh=id is None),
            generated=id is None,
            **_on_conflict(said.get("conflict", "update")),
        )
        return cls(like, id, like.is_plain, bool(like.options.get("cron")))

    def draft(self, data: bytes, id: str | None = None) -> Draft:
        """A job like this."""
        return replace(self.like, id=id or self.id or new_id(), data=data)

    def unique(self, id: str, window: int | None) -> Template:
        """The same of a job that is ignored where one with its id is unfinished, or was added within the window."""
        like = replace(self.like, generated=False, conflict="unique", window=window)
        return replace(self, like=like, id=id, is_plain=False)

    def at(self, now: int) -> Template:
        """Of a cron series the first due time is worked out, behind now and behind the time that it was given."""
        if not self.is_cron:
            return self
        like = self.like
        due = first_due(like.options, now, like.delay, like.due)
        return replace(self, like=replace(like, delay=None, due=due, options={**like.options, "slot": due}))


def first_due(options: Mapping[str, Any], now: int, delay: int | None, due: int | None) -> int:
    """When a cron series begins that is not to begin before its delay or due time."""
    earliest = now + delay if delay is not None else due or now
    return next_due(options["cron"], options["tz"], max(now, earliest - 1))


def _options(said: Terms, *, fresh: bool) -> dict[str, Any]:
    options = {name: value for name, value in said.items() if name not in NOT_OPTIONS}
    if options.get("every") and "again" not in options:
        options["again"] = True
    if not fresh:
        return options
    if not options.get("again"):
        options = {name: value for name, value in options.items() if name not in ("again", "every", "cron", "tz")}
    if options.get("priority") == NORMAL:
        del options["priority"]
    # Where there is nothing yet, "none" need not be said; what matters to a run beats its task and queue.
    return {name: value for name, value in options.items() if value is not False or name in FROM_THE_RUN_ON}


def _on_conflict(said: str | Update) -> dict[str, Any]:
    if not isinstance(said, Update):
        conflict: Conflict = said  # type: ignore[assignment] # checked by JobOptions
        return {"conflict": conflict}
    counts = said.data if not isinstance(said.counts, bool) else said.counts
    return {"flags": Flags(data=said.data, run_at=said.run_at, options=said.told_options, counts=counts)}


def add_time(terms: Terms) -> Terms:
    """Those that matter before a run: they are taken when a job is added."""
    return {name: value for name, value in terms.items() if name not in FROM_THE_RUN_ON}


def from_the_run_on(terms: Terms) -> Terms:
    """Those that matter from a run on: they are taken when a job is claimed."""
    return {name: value for name, value in terms.items() if name in FROM_THE_RUN_ON}


def snapshot(queue: str, draft: Draft, life: int, outcome: str, now: int) -> JobRecord:
    """What an add tells of its job without asking the server: the times are by this machine's clock."""
    due = now + draft.delay if draft.delay is not None else draft.due or now
    status = JobState.BLOCKED if outcome == "blocked" else JobState.SCHEDULED if due > now else JobState.WAITING
    options: Mapping[str, Any] = draft.options
    if "lasts" in options:
        options = {**options, "expires": now + options["lasts"]}
    head = Record(now, due, life, draft.task, options, draft.data)
    return JobRecord(queue, draft.id, head, status)
