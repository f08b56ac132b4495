"""The options of a job: what may be said of it, by whom, and how it is told to the server."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, TypedDict

from skep.core import terms
from skep.core.retry import Backoff
from skep.core.schedule import check_cron
from skep.core.terms import TOLD_AS, Duration, Instant, Priority, Terms
from skep.core.unset import UNSET, Unset
from skep.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What an add changes of an unfinished job that has its id.

    data     data and task
    run_at   its time: `True` sets it (to now, where the add names none), `"if_later"` and `"if_earlier"` only move it
    options  the others that the add names: all, none, or those in a set of names
    counts   failures, stalls and timeouts begin anew; by default where the data changes
    """

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    options: bool | AbstractSet[str] = True
    counts: bool | Unset = UNSET

    def __post_init__(self) -> None:
        for name in ("data", "counts"):
            if not isinstance(getattr(self, name), bool) and getattr(self, name) is not UNSET:
                raise InvalidOption(name, getattr(self, name), "True or False")
        if not isinstance(self.run_at, bool) and self.run_at not in ("if_later", "if_earlier"):
            raise InvalidOption("run_at", self.run_at, "True, False, 'if_later' or 'if_earlier'")
        known = isinstance(self.options, AbstractSet) and self.options <= TOLD_AS.keys()
        if not isinstance(self.options, bool) and not known:
            raise InvalidOption("options", self.options, f"True, False, or a set of {', '.join(TOLD_AS)}")

    @property
    def told_options(self) -> bool | frozenset[str]:
        """The options as the server knows them."""
        if isinstance(self.options, bool):
            return self.options
        return frozenset(told for name in self.options for told in TOLD_AS[name])


OnConflict: TypeAlias = Literal["update", "ignore", "raise"] | Update


class ChangeOptions(TypedDict, total=False):
    """What may be said of a job that is there already."""

    task: str | None
    name: str | None
    priority: Priority | int | str | None
    delay: Duration | None
    run_at: Instant | None
    expires: Instant | timedelta | None
    repeat: bool | int | None
    every: Duration | None
    cron: str | None
    tz: str | None
    meta: Any
    retries: int | None
    backoff: Backoff | None
    max_stalls: int | None
    timeout: Duration | None
    keep: bool | Duration | None
    max_logs: int | None


class AddOptions(ChangeOptions, total=False):
    """What may be said of a job when it is added; `JobOptions` explains each."""

    id: str | None
    on_conflict: OnConflict | None


def _on_conflict(value: object) -> Terms:
    if value is not None and value not in ("update", "ignore", "raise") and not isinstance(value, Update):
        raise InvalidOption("on_conflict", value, "'update', 'ignore', 'raise' or an Update(...)")
    return {"conflict": "update" if value is None else value}


CHECKS = {**terms.CHECKS, "on_conflict": _on_conflict}


@dataclass(frozen=True, kw_only=True, repr=False)
class JobOptions:
    """What may be said of a job. Durations are seconds or a timedelta, instants a datetime or seconds since 1970.

    Not named is UNSET: then the task or the queue says it. `None` means that there is to be none.

    id           a name of your own, at most 200 bytes: no second unfinished job has it; else one is made
    task         the handler that runs it; none: the queue's own
    name         a label to find it by
    priority     highest, high, medium, normal, low or lowest; or 10, 20 ... 60
    delay        from now; or run_at, an instant: not before
    expires      from now, or an instant: if it has not begun by then, it is cancelled
    repeat       again after each end: True for ever, or so many more times; `every`: after so long (300 s)
    cron, tz     at the times of a cron line, "0 9 * * mon-fri", on the clocks of a zone, "Europe/Paris" (UTC)
    meta         small JSON beside the data, which the handler is not called with
    retries      so many runs more when it fails (10)
    backoff      how long after each failure (Backoff.exponential(2, 300))
    max_stalls   so many deaths of its worker are forgiven (3)
    timeout      so long a run may take
    keep         how long it stays when it has ended: True for ever, False not at all (as the queue's retention)
    max_logs     so many of its newest log lines are kept (1000)
    on_conflict  where its id is known: "update" (what it is, and when it runs), "ignore", "raise", or an Update(...)
    """

    id: str | Unset | None = UNSET
    task: str | Unset | None = UNSET
    name: str | Unset | None = UNSET
    priority: Priority | int | str | Unset | None = UNSET
    delay: Duration | Unset | None = UNSET
    run_at: Instant | Unset | None = UNSET
    expires: Instant | timedelta | Unset | None = UNSET
    repeat: bool | int | Unset | None = UNSET
    every: Duration | Unset | None = UNSET
    cron: str | Unset | None = UNSET
    tz: str | Unset | None = UNSET
    meta: Any = UNSET
    retries: int | Unset | None = UNSET
    backoff: Backoff | Unset | None = UNSET
    max_stalls: int | Unset | None = UNSET
    timeout: Duration | Unset | None = UNSET
    keep: bool | Duration | Unset | None = UNSET
    max_logs: int | Unset | None = UNSET
    on_conflict: OnConflict | Unset | None = UNSET

    def __post_init__(self) -> None:
        _ = self.terms  # a wrong value is refused here and now

    @classmethod
    def as_kept(cls, said: Mapping[str, Any]) -> Self:
        """What the server keeps of a job. Other releases and languages may say what would be refused here."""
        options = object.__new__(cls)
        for each in fields(cls):
            object.__setattr__(options, each.name, said.get(each.name, UNSET))
        return options

    @cached_property
    def terms(self) -> Terms:
        """As the server is told them."""
        told: Terms = {}
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if value is not UNSET:
                told.update(check(value))
        if told.get("delay") is not None and told.get("due") is not None:
            raise InvalidOption("run_at", self.run_at, "the place of `delay`: name one of the two")
        if self.cron is not UNSET or self.tz is not UNSET:
            self._check_cron(told)
        elif told.get("again"):
            told |= {"cron": False, "tz": False}
        return told

    def _check_cron(self, terms: Terms) -> None:
        """A cron line makes a series by itself, and takes the place of another way to repeat."""
        if not terms.get("cron"):
            if terms.get("tz"):
                raise InvalidOption("tz", self.tz, "effect beside `cron` only")
            if terms.get("again") is None:
                terms["again"] = False
            return
        if terms.get("every"):
            raise InvalidOption("every", self.every, "the place of `cron`: name one of the two")
        terms["tz"] = terms.get("tz") or "UTC"
        check_cron(terms["cron"], terms["tz"])
        terms.setdefault("again", True)
        terms["every"] = False

    def __repr__(self) -> str:
        shown = ((each.name, getattr(self, each.name)) for each in fields(self))
        named = ", ".join(f"{name}={value!r}" for name, value in shown if value is not UNSET)
        return f"{type(self).__name__}({named})"


@dataclass(frozen=True, repr=False)
class JobSpec(JobOptions):
    """A job that is not added yet: its data and its options, for `add` and `add_many`, which check them."""

    data: Any = None

    def __post_init__(self) -> None:
        # Not checked here: of many, the wrong one is told by its index.
        pass
