"""Lanes: how a call that is said twice takes effect once, and what is known of it when no answer comes.

A lane is a client's place in one queue: a name and a counter, with at most one unanswered call. The server
keeps of each lane the number and the answer of its last call: the same number again gets that answer, a
smaller one is a late copy and refused as `STALE`, a lane that nobody can know any more as `OLDLANE`. A call
that was given up, though a copy of it may still arrive, is followed by a *fence*, the lane's next call: it
says what became of it, and keeps late copies out.

Here is all of it that needs no I/O; `store` sends, `scripts/lib/calls.lua` is the other side.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any

from skep.core.call import Call, Script

# Lanes are forgotten after two hours of silence. No call is said again for nearly as long.
LONGEST = 600.0

# A connection that rested may be dead while the server is well: the first resend waits for nothing.
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4)

UNFIT = re.compile(r"[^0-9A-Za-z._-]")


def lane_name(host: str, pid: int, birth: int, token: str) -> str:
    """A name that no other client has. `birth`: seconds of the server's clock; old lanes are known by it."""
    return f"{UNFIT.sub('', host)[:20]}:{pid}:{birth}:{token}"


class Lane:
    """A name and the number of its last call. `copies`: its client waits for replicas to have its changes."""

    __slots__ = ("number", "prefix")

    def __init__(self, name: str, *, copies: bool = False) -> None:
        self.prefix = f"{name}+" if copies else f"{name} "
        self.number = 0

    def next(self) -> str:
        """Uses up the next number; the lane and this number as they are sent."""
        self.number += 1
        return f"{self.prefix}{self.number:016d}"


class Fate(Enum):
    """How an attempt to send a call ended, when it was not answered."""

    LOST = auto()  # without a reply of its own
    LATER = auto()  # refused as a whole, for the moment: loading, read-only, moving
    STRANGE = auto()  # STALE or OLDLANE
    FINAL = auto()  # refused as a whole, for good


class Step(Enum):
    """What to do after such an attempt."""

    AGAIN = auto()
    NEW_LANE = auto()
    REFUSE = auto()  # it was not applied, and never will be
    GIVE_UP = auto()


class Trip:
    """One call on its way: which copies are unaccounted for, and until when it may be said again."""

    __slots__ = (
        "began",
        "call",
        "copies",
        "doubt",
        "fence",
        "lane",
        "loose",
        "out",
        "packed",
        "patience",
        "said",
        "tries",
        "until",
        "wire",
    )

    def __init__(self, call: Call[Any], began: float) -> None:
        self.call = call
        self.began = began
        self.lane: Lane | None = None
        self.said = ""  # lane and number, as sent
        self.fence: GivenUp | None = None  # whose fence it is, if it is one
        self.packed = b""
        self.wire: Any = None  # where a reply is still to come, though its caller was cancelled
        self.out = False  # a copy is under way
        self.loose = False  # a copy went out in this lane, and its own reply will never come
        self.doubt = False  # the same, in a lane it had before
        self.tries = 0
        self.copies = 0  # so many replicas have what it wrote
        self.patience = 0.0  # seconds that its answer may take longer than others: it waits for something
        self.until: float | None = None  # said again no later than this; unknown until the first trouble

    @property
    def maybe_done(self) -> bool:
        """Whether any copy of it may have taken effect, or still may."""
        return self.loose or self.doubt or self.out or self.fence is not None

    def step(self, fate: Fate, now: float, retry_for: float) -> Step:
        """What to do after an attempt that ended like this. Says of the trip what is known now."""
        self.loose, self.out = self.loose or self.out, False
        unsure = self.lane is not None and self.loose
        if fate is Fate.FINAL:
            # Where an earlier copy may yet be applied, no refusal is the last word.
            return Step.GIVE_UP if unsure else Step.REFUSE
        if fate is Fate.STRANGE and unsure and not self.call.again:
            # A copy that still comes would be refused in the same way, and the lane has nothing more to tell.
            self.leave_lane()
            return Step.GIVE_UP
        if self.until is None:
            self.until = min(now + retry_for, self.began + LONGEST)
        # A lane that rested too long is nobody's fault: it is replaced once, however little time there is.
        replaced = fate is Fate.STRANGE and self.tries == 0
        if now >= self.until and not replaced:
            return Step.GIVE_UP
        return Step.NEW_LANE if fate is Fate.STRANGE else Step.AGAIN

    def pause(self, now: float, luck: float) -> float:
        """How long to wait before the next attempt. `luck`, 0 to 1, keeps clients apart."""
        wanted = PAUSES[min(self.tries, len(PAUSES) - 1)] * (0.5 + luck / 2)
        self.tries += 1
        return wanted if self.until is None else max(0.0, min(wanted, self.until - now))

    def leave_lane(self) -> None:
        """Makes it a call without a lane: it is given a new one with its next attempt."""
        self.doubt, self.loose = self.doubt or self.loose, False
        self.lane, self.said, self.packed = None, "", b""

    def enter(self, lane: Lane) -> None:
        """Gives it a lane, and uses up a number before its first byte leaves."""
        self.lane, self.said = lane, lane.next()


class GivenUp:
    """A call that was given up: what became of it is known when its fence is answered."""

    __slots__ = ("call", "fence", "kept", "known", "lane", "safe", "said")

    def __init__(self, trip: Trip, lane: Lane, fence: Script) -> None:
        self.call = trip.call
        self.lane = lane
        self.fence: Call[bytes] = Call(fence, trip.call.keys, (trip.said[-16:],), bytes)
        self.said = lane.next()
        # The answer it was given. Empty: it never takes effect; None: nobody can know.
        self.kept: bytes | None = None
        self.known = False
        self.safe = False  # known, and in as many copies as were asked for

    def ask(self, began: float) -> Trip:
        """A trip of its fence, which may be said as often as one likes: its number stays."""
        trip = Trip(self.fence, began)
        trip.lane, trip.said, trip.fence = self.lane, self.said, self
        return trip

    def settled(self, kept: bytes | None, *, safe: bool) -> None:
        """The fence was answered, or the lane is not known any more: late copies are refused."""
        self.known, self.kept, self.safe = True, kept, safe
