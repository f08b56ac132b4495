"""Durations as users say them, seconds or a `timedelta`, made into whole milliseconds."""

from __future__ import annotations

import math
from datetime import timedelta

from skep.errors import InvalidOption

EXAMPLE = "seconds of zero or more, or a timedelta, such as 1.5"
LONGEST = 100 * 366 * 86400.0
"""A century. Longer waits are mistakes (milliseconds said as seconds), and would leave the range of dates."""


def to_ms(option: str, value: object, *, wanted: str = EXAMPLE) -> int:
    """A duration in whole milliseconds; `InvalidOption` names the option it was given for."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
        raise InvalidOption(option, value, wanted)
    # What is not nothing must not become nothing.
    return math.ceil(seconds * 1000) if seconds < 0.001 else round(seconds * 1000)
