"""When a failed job runs again: back-offs, and what a failure leads to. Pure: same arguments, same answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from skep.core.duration import to_ms
from skep.core.job import JobError, encode_error
from skep.core.outcome import Failed, Retried
from skep.errors import InvalidOption

Duration: TypeAlias = "float | timedelta"
Kind = Literal["none", "fixed", "linear", "exponential"]

EXAMPLE = "a Backoff, such as Backoff.exponential(2, 300)"


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a job waits after each failure. Made by `none`, `fixed`, `linear` and `exponential`."""

    kind: Kind
    first: int = 0
    most: int = 0
    factor: float = 2.0
    jitter: float = 0.0

    JITTER: ClassVar[float] = 0.2
    """A wait is shortened by up to this part of it, so that what failed together does not return together."""

    @classmethod
    def none(cls) -> Backoff:
        """Retries at once."""
        return cls("none")

    @classmethod
    def fixed(cls, delay: Duration) -> Backoff:
        """The same wait after every failure."""
        return cls("fixed", to_ms("delay", delay))

    @classmethod
    def linear(cls, step: Duration) -> Backoff:
        """One step after the first failure, two after the second, and so on."""
        return cls("linear", to_ms("step", step))

    @classmethod
    def exponential(cls, min: Duration, max: Duration, factor: float = 2, jitter: float = JITTER) -> Backoff:
        """`min` after the first failure, `factor` times as long after each further one, at most `max`.

        Each wait is shortened by a random part of it, at most `jitter` (0 to 1).
        """
        first, most = to_ms("min", min), to_ms("max", max)
        if most < first:
            raise InvalidOption("max", max, f"a duration that is not below min={min!r}")
        grows, shortens = _number("factor", factor, 1, 1000), _number("jitter", jitter, 0, 1)
        return cls("exponential", first, most, grows, shortens)

    def delay_ms(self, failures: int, luck: float) -> int:
        """The wait after so many failures, this one included. `luck`: 0 to 1, drawn by the caller."""
        if self.kind == "none":
            return 0
        if self.kind == "fixed":
            return self.first
        if self.kind == "linear":
            return self.first * failures
        return round(self._grown(failures) * (1 - self.jitter * luck))

    def _grown(self, failures: int) -> float:
        try:
            return min(self.first * self.factor ** (failures - 1), float(self.most))
        except OverflowError:
            return self.most

    def to_json(self) -> str:
        """As the server keeps it among a job's options."""
        parts: list[Any] = [self.kind]
        if self.kind in ("fixed", "linear"):
            parts.append(self.first)
        elif self.kind == "exponential":
            parts += [self.first, self.most, self.factor, self.jitter]
        return msgspec.json.encode(parts).decode()

    @classmethod
    def read(cls, text: str) -> Backoff:
        """From what `to_json` gave, here or in another language."""
        try:
            kind, *numbers = msgspec.json.decode(text, type=list[str | int | float])
        except (msgspec.MsgspecError, ValueError, TypeError):
            raise InvalidOption("backoff", text, EXAMPLE) from None
        seconds = [number / 1000 for number in numbers[:2] if isinstance(number, int | float)]
        match kind, seconds, numbers[2:]:
            case "none", [], []:
                return cls.none()
            case "fixed", [delay], []:
                return cls.fixed(delay)
            case "linear", [step], []:
                return cls.linear(step)
            case "exponential", [least, most], [int() | float() as factor, int() | float() as jitter]:
                return cls.exponential(least, most, factor, jitter)
            case _:
                raise InvalidOption("backoff", text, EXAMPLE)


def _number(option: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidOption(option, value, f"a number from {least} to {most}")
    return float(value)


Chooser: TypeAlias = Callable[[int, BaseException], Duration]
"""A back-off of a task's own: asked with the number of failures and the exception, gives a duration."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a job may fail, and how long it waits each time."""

    retries: int = 10
    backoff: Backoff = Backoff("exponential", 2_000, 300_000, 2.0, Backoff.JITTER)


def after_failure(
    policy: RetryPolicy, failures: int, error: JobError, *, luck: float, next_due: int | None = None
) -> Retried | Failed:
    """What a failed run leads to. `failures`: with this one; `next_due`: of a cron series."""
    late = error.kind == "timeout"
    if error.kind == "permanent" or failures > policy.retries:
        return Failed(encode_error(error), timeout=late, next_due=next_due)
    return Retried(policy.backoff.delay_ms(failures, luck), encode_error(error), timeout=late)
