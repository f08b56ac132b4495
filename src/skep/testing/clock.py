"""A clock that a test moves: `Queue("mail", clock=GivenClock())`."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class GivenClock:
    """What a queue goes by in the place of the server's clock. It stands still until it is moved.

        clock = GivenClock()
        mail = Queue("mail", clock=clock)
        welcome.options(delay=3600).enqueue(1)
        clock.advance(3600)
        drain(mail)

    Without a start it begins at this moment. A `Worker` goes by the server's clock: it is `drain` that goes by this.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._ms = int((time.time() if start is None else start.timestamp()) * 1000)

    def __call__(self) -> int:
        """Milliseconds since 1970, as a queue takes them."""
        return self._ms

    def __repr__(self) -> str:
        return f"<GivenClock {self.now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """What it shows."""
        return datetime.fromtimestamp(self._ms / 1000, UTC)

    def advance(self, seconds: float | timedelta) -> None:
        """Moves it on."""
        on = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        if on < 0:
            raise ValueError(f"a clock does not go back by {-on} s: make another one, and an empty queue")
        self._ms += round(on * 1000)
