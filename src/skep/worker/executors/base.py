"""What every executor can do."""

from __future__ import annotations

from typing import Protocol

from skep.worker.attempt import Attempt, Cause


class Executor(Protocol):
    """Runs the handlers of attempts. Each ends with one call of `attempt.place.ended`, on the loop."""

    def start(self, attempt: Attempt) -> None:
        """Begins a run."""
        ...

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:
        """Tells it to end."""
        ...

    def close(self) -> None:
        """Nothing more is started."""
        ...
