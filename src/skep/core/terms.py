"""What options are called by the server, and how values become that: one check for each option."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias

from skep.core.codec import encode
from skep.core.duration import to_ms
from skep.core.limits import MAX_META, check_label, check_new_id
from skep.core.retry import EXAMPLE as BACKOFF_EXAMPLE
from skep.core.retry import Backoff
from skep.errors import InvalidOption

Duration: TypeAlias = float | timedelta
Instant: TypeAlias = float | datetime
Terms: TypeAlias = dict[str, Any]
"""Options as the server is told them: times in milliseconds, False for "none"."""

LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""
FIRST_INSTANT = 1_000_000_000
"""A number of seconds from here on (September 2001) is an instant where either could be meant."""

ZERO_OR_MORE = "a whole number of zero or more"
INSTANT_EXAMPLE = "a datetime with a time zone, or seconds since 1970"


class Priority(IntEnum):
    """Lower numbers go first; within one priority, first come, first served."""

    HIGHEST = 10
    HIGH = 20
    MEDIUM = 30
    NORMAL = 40
    LOW = 50
    LOWEST = 60

    @classmethod
    def of(cls, value: object, option: str = "priority") -> Priority:
        """One of the six, by name or number."""
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool) and value in set(cls):
            return cls(value)
        raise InvalidOption(option, value, "one of " + ", ".join(f"{each.name.lower()} ({each})" for each in cls))


# Names that say the same of a job: who names one of them names them all.
GROUPS = (
    frozenset({"delay", "due"}),
    frozenset({"expires", "lasts"}),
    frozenset({"again", "every", "cron", "tz"}),
)
GROUP_OF = {name: group for group in GROUPS for name in group}

# What each option is called by the server, where it changes a job that is there.
TOLD_AS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "priority": ("priority",),
    "expires": ("expires", "lasts"),
    "repeat": ("again",),
    "every": ("every",),
    "cron": ("cron", "tz", "slot", "again", "every"),
    "tz": ("tz",),
    "meta": ("meta",),
    "retries": ("retries",),
    "backoff": ("backoff",),
    "max_stalls": ("max_stalls",),
    "timeout": ("timeout",),
    "keep": ("keep",),
    "max_logs": ("max_logs",),
}
FROM_THE_RUN_ON = frozenset({"retries", "backoff", "max_stalls", "timeout", "keep", "max_logs"})


def instant_ms(option: str, value: object, wanted: str = INSTANT_EXAMPLE) -> int:
    """A point in time in milliseconds since 1970."""
    seconds = value
    if isinstance(value, datetime) and value.tzinfo is not None:
        seconds = value.timestamp()
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LAST_MS / 1000:
        raise InvalidOption(option, value, wanted)
    return round(seconds * 1000)


def _count(option: str, value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise InvalidOption(option, value, ZERO_OR_MORE)
    return value


def _above_zero(option: str, value: object) -> int:
    ms = to_ms(option, value)
    if ms == 0:
        raise InvalidOption(option, value, "a duration above zero (seconds or a timedelta), or None for none")
    return ms


def _id(value: object) -> Terms:
    return {"id": None if value is None else check_new_id(value)}


def _task(value: object) -> Terms:
    return {"task": "" if value is None else check_label("task", value)}


def _name(value: object) -> Terms:
    return {"name": False if value is None else check_label("name", value)}


def _priority(value: object) -> Terms:
    return {"priority": int(Priority.NORMAL if value is None else Priority.of(value))}


def _delay(value: object) -> Terms:
    return {"delay": None if value is None else to_ms("delay", value)}


def _run_at(value: object) -> Terms:
    return {"due": None if value is None else instant_ms("run_at", value)}


def _expires(value: object) -> Terms:
    if value is None:
        return {"expires": False, "lasts": False}
    wanted = "seconds or a timedelta from now, or an instant: a datetime with a time zone, or seconds since 1970"
    number = isinstance(value, int | float) and math.isfinite(value) and value >= FIRST_INSTANT
    if isinstance(value, datetime) or number:
        return {"expires": instant_ms("expires", value, wanted), "lasts": False}
    return {"lasts": to_ms("expires", value, wanted=wanted)}


def _repeat(value: object) -> Terms:
    if value is None or isinstance(value, bool):
        return {"again": bool(value)}
    return {"again": _count("repeat", value) or False}


def _every(value: object) -> Terms:
    return {"every": False if value is None else _above_zero("every", value)}


def _cron(value: object) -> Terms:
    return {"cron": False if value is None else value}


def _tz(value: object) -> Terms:
    return {"tz": False if value is None else value}


def _meta(value: object) -> Terms:
    return {"meta": False if value is None else encode(value, "meta", MAX_META).decode()}


def _backoff(value: object) -> Terms:
    backoff = Backoff.none() if value is None else value
    if not isinstance(backoff, Backoff):
        raise InvalidOption("backoff", value, BACKOFF_EXAMPLE)
    return {"backoff": backoff.to_json()}


def _timeout(value: object) -> Terms:
    return {"timeout": False if value is None else _above_zero("timeout", value)}


def _keep(value: object) -> Terms:
    if value is None:
        return {"keep": False}
    if isinstance(value, bool):
        return {"keep": True if value else 0}
    return {"keep": to_ms("keep", value, wanted="True for ever, False not at all, seconds or a timedelta")}


CHECKS: Mapping[str, Callable[[object], Terms]] = {
    "id": _id,
    "task": _task,
    "name": _name,
    "priority": _priority,
    "delay": _delay,
    "run_at": _run_at,
    "expires": _expires,
    "repeat": _repeat,
    "every": _every,
    "cron": _cron,
    "tz": _tz,
    "meta": _meta,
    "retries": lambda value: {"retries": _count("retries", value)},
    "backoff": _backoff,
    "max_stalls": lambda value: {"max_stalls": _count("max_stalls", value)},
    "timeout": _timeout,
    "keep": _keep,
    "max_logs": lambda value: {"max_logs": _count("max_logs", value)},
}


def merged(*layers: Terms) -> Terms:
    """What these say together, the last word first: who names one of a group names all of it."""
    said: Terms = {}
    for layer in reversed(layers):
        named = {GROUP_OF[name] for name in layer if name in GROUP_OF}
        for name in [name for name in said if GROUP_OF.get(name) in named]:
            del said[name]
        said.update(layer)
    return said
