"""Settings of a queue: they live in the server, and hold for all who use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypedDict

from skep.core.duration import to_ms
from skep.core.terms import ZERO_OR_MORE, Duration
from skep.core.unset import UNSET, Unset
from skep.errors import InvalidOption

FOR_EVER_MS = 2**53
Setting: TypeAlias = str | int
History = Literal["all", "endings", "none"]


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= FOR_EVER_MS:
        raise InvalidOption(name, value, f"{ZERO_OR_MORE}, or None for no limit")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished jobs stay in the server, and how many of them: the oldest go first.

    Durations are seconds or a `timedelta`, 0 for not at all, None for ever; a number of None is no limit.
    """

    succeeded: Duration | None = 3600
    failed: Duration | None = 7 * 86400
    cancelled: Duration | None = 3600
    max_succeeded: int | None = 100_000
    max_failed: int | None = 100_000
    max_cancelled: int | None = 100_000

    def __post_init__(self) -> None:
        self.settings()

    def settings(self) -> dict[str, Setting]:
        """As the server keeps them."""
        said: dict[str, Setting] = {}
        for status in ("succeeded", "failed", "cancelled"):
            age, most = getattr(self, status), getattr(self, f"max_{status}")
            said[f"keep_{status}"] = FOR_EVER_MS if age is None else to_ms(status, age)
            said[f"max_{status}"] = FOR_EVER_MS if most is None else _whole(f"max_{status}", most)
        return said

    @classmethod
    def read(cls, kept: Mapping[str, str]) -> Retention:
        """From what the server keeps; what nobody has set is as by default."""
        said: dict[str, Any] = {}
        for each in fields(cls):
            age = not each.name.startswith("max_")
            text = kept.get(f"keep_{each.name}" if age else each.name)
            if text is not None:
                number = int(text)
                said[each.name] = None if number == FOR_EVER_MS else number / 1000 if age else number
        return cls(**said)


class SettingOptions(TypedDict, total=False):
    """What may be set of a queue; `Settings` explains each."""

    max_waiting: int | None
    max_events: int | None
    max_event_bytes: int | None
    max_event_data: int | None
    event_data: bool | None
    history: History | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a queue as they are in the server.

    max_waiting      an add that would make more jobs wait is refused with `QueueFull`; None: no limit
    max_events       the stream keeps at least so many events
    max_event_bytes  and never much more than so many bytes
    max_event_data   larger data and results are left out of events
    event_data       False: data and results never go into events
    history          "all" events, only "endings" of runs, or "none"
    """

    retention: Retention = Retention()
    max_waiting: int | None = None
    max_events: int = 100_000
    max_event_bytes: int = 32 << 20
    max_event_data: int = 16 << 10
    event_data: bool = True
    history: History = "all"

    @classmethod
    def read(cls, kept: Mapping[str, str]) -> Settings:
        """From what the server keeps; what nobody has set is as by default."""
        said: dict[str, Any] = {
            name: int(kept[name])
            for name in ("max_waiting", "max_events", "max_event_bytes", "max_event_data")
            if kept.get(name)
        }
        if "history" in kept:
            said["history"] = kept["history"]
        return cls(retention=Retention.read(kept), event_data=kept.get("event_data") != "0", **said)


def told(retention: Retention | Unset | None, options: Mapping[str, Any]) -> dict[str, Setting]:
    """What is to be written of these; None takes a setting back, "" is how the server is told so."""
    said: dict[str, Setting] = {}
    if retention is None:
        said |= dict.fromkeys(Retention().settings(), "")
    elif retention is not UNSET:
        said |= retention.settings()
    for name, value in options.items():
        said[name] = "" if value is None else _told(name, value)
    return said


def _told(name: str, value: object) -> Setting:
    if name == "history":
        if value not in ("all", "endings", "none"):
            raise InvalidOption(name, value, "'all', 'endings' or 'none'")
        return str(value)
    if name == "event_data":
        if not isinstance(value, bool):
            raise InvalidOption(name, value, "True or False")
        return "1" if value else "0"
    if name not in SettingOptions.__annotations__:
        raise TypeError(f"there is no setting {name!r}; there are {', '.join(SettingOptions.__annotations__)}")
    return _whole(name, value)
