"""A worker's registration at one queue: a name, claims that are numbered, and the runs that it holds."""

from __future__ import annotations

import secrets

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class Post:
    """One name at one queue, for as long as it was not fenced: who was, begins anew under another.

    `held` has each run until its end was answered; a renewal names them, in a snapshot with `answered`.
    """

    __slots__ = ("answered", "held", "name", "number", "until")

    def __init__(self, until: float) -> None:
        self.name = "".join(secrets.choice(ALPHABET) for _ in range(8))
        self.number = 0
        self.answered = 0
        self.held: dict[str, bytes] = {}
        self.until = until  # on the monotonic clock: its lease holds at least until then

    def snapshot(self) -> tuple[int, dict[str, bytes]]:
        """The number of the last answered claim, and runs: all of those up to it, whatever the loop does meanwhile."""
        return self.answered, self.held.copy()

    def forget(self, id: str, lease: bytes) -> None:
        """A run is over for both sides. The id may run here again already, under another lease."""
        if self.held.get(id) == lease:
            del self.held[id]
