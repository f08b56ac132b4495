"""Ids that a client makes: 16 letters and digits, in the order of their making, and unlike any other.

    milliseconds   7 characters   since the epoch, so that ids of several processes sort by time, too
    count          2 characters   within that millisecond; when they are used up, the next one is borrowed
    token          7 characters   drawn at random by every process (41 bits)

Two processes would have to draw the same token to make the same id, and make it in the same millisecond.
"""

from __future__ import annotations

import os
import secrets
import threading
import time

LENGTH = 16
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
COUNTS = tuple(first + second for first in ALPHABET for second in ALPHABET)
PER_MS = len(COUNTS)


def _written(number: int) -> str:
    """Seven characters that sort as the numbers do."""
    text = ""
    for _ in range(7):
        number, digit = divmod(number, 62)
        text = ALPHABET[digit] + text
    return text


class Ids:
    """Makes ids, for all threads of a process; in a forked child they are made with another token."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)

    def begin(self) -> None:
        """A new token: as for a new process."""
        self._lock = threading.Lock()
        self._token = _written(secrets.randbelow(62**7))
        self._ms = 0
        self._used = PER_MS
        self._ends: tuple[str, ...] = tuple(count + self._token for count in COUNTS)
        self._start = ""

    def one(self) -> str:
        """The next id."""
        with self._lock:
            self._advance()
            self._used += 1
            return self._start + self._ends[self._used - 1]

    def many(self, count: int) -> list[str]:
        """So many, in order."""
        made: list[str] = []
        with self._lock:
            while len(made) < count:
                self._advance()
                first = self._used
                self._used = min(PER_MS, first + count - len(made))
                start = self._start
                made += [start + end for end in self._ends[first : self._used]]
        return made

    def _advance(self) -> None:
        # A clock that stands still or goes back changes nothing: when a millisecond is full, the next is borrowed.
        now = time.time_ns() // 1_000_000
        if now > self._ms:
            self._ms = now
        elif self._used >= PER_MS:
            self._ms += 1
        else:
            return
        self._used, self._start = 0, _written(self._ms)


_ids = Ids()
new_id = _ids.one
new_ids = _ids.many
