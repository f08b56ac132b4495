"""A clock that a test moves."""

from __future__ import annotations


class GivenClock:
    """Milliseconds since the epoch, as a transport takes them."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = start_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        """Moves it on."""
        self.now_ms += int(1000 * (3600 * hours + seconds))
