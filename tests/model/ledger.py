"""What the events of a queue say, read without the model, and checked while reading."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

HANDLED = {"t1", "on_failure:t1"}
BIRTHS = ("added", "blocked", "revived", "repeated")
ENDS = ("succeeded", "failed", "cancelled")

Key: TypeAlias = tuple[str, int]
"""An id and the number of one of its lives."""
Asked: TypeAlias = tuple[bool | str, int, bool]
"""What an add asked of a blocked job: `run_at`, its time, and whether it resets the counts."""


def replayed(due: int, asked: Iterable[Asked]) -> int:
    """The time of a waiting job after these adds."""
    for run_at, at, _ in asked:
        due = {True: at, False: due, "if_later": max(due, at), "if_earlier": min(due, at)}[run_at]
    return due


@dataclass
class Life:
    number: int
    status: str
    due: int
    run: int = 0
    active: bool = False
    stop: bool = False


@dataclass
class Ledger:
    """A projection of the events alone. Feeding it checks order, numbers, ends and failure jobs."""

    seq: int = 0
    heads: dict[str, Life] = field(default_factory=dict[str, Life])
    twins: dict[str, Life] = field(default_factory=dict[str, Life])
    lives: frozenset[Key] = frozenset()
    ended: frozenset[Key] = frozenset()
    merged: dict[Key, Key] = field(default_factory=dict[Key, Key])
    tally: Counter[str] = field(default_factory=Counter[str])
    former: Key = ("", 0)  # the life that ended last
    owed: str = ""  # the failure job that the next event must add
    acked: frozenset[Key] = frozenset()
    beside: dict[Key, list[Asked]] = field(default_factory=dict[Key, list[Asked]])  # the adds of T, in order

    def copy(self) -> Ledger:
        fresh = copy.copy(self)
        fresh.heads = {id: copy.copy(life) for id, life in self.heads.items()}
        fresh.twins = {id: copy.copy(life) for id, life in self.twins.items()}
        fresh.merged, fresh.tally, fresh.beside = dict(self.merged), Counter(self.tally), dict(self.beside)
        return fresh

    def live(self) -> int:
        return len(self.heads) + len(self.twins)

    def feed(self, event: Any) -> None:
        assert event.seq == self.seq + 1, "gap in seq"
        self.seq += 1
        self.tally[event.type] += 1
        added_failure = event.type == "added" and event.id.startswith("failure-")
        assert (event.id if added_failure else "") == self.owed, "failure jobs: one each, at once"
        self.owed = ""
        if event.type in BIRTHS:
            self._birth(event)
        elif event.type in ENDS:
            self._end(event)
        elif event.type == "removed":
            if event.status not in ENDS:
                self._gone(event)
        elif event.type == "dropped":
            self._dropped(event)
        elif event.type == "merged":
            self._merged(event)
        elif event.type == "unblocked":
            assert event.id not in self.heads
            self.heads[event.id] = self.twins.pop(event.id)
            self._moved(self.heads[event.id], event)
        elif event.id and event.status not in ENDS:
            self._step(event)

    def _birth(self, event: Any) -> None:
        key = (event.id, event.life)
        assert key not in self.lives, "a life's number came again"
        assert event.life in (0, event.seq)
        self.lives |= {key}
        blocked = event.status == "blocked"
        assert blocked == (event.id in self.heads), f"{event.id} has a live job already, or lacks one"
        assert event.id not in self.twins or (event.type == "repeated" and not blocked)
        assert not blocked or self.heads[event.id].active, "T without A"
        (self.twins if blocked else self.heads)[event.id] = Life(event.life, event.status, event.due)
        if blocked:
            repeated = event.type == "repeated"
            self.beside[key] = [*self.beside[self.former], (True, event.due, False)] if repeated else []

    def _dropped(self, event: Any) -> None:
        assert event.details["live"] == self.live()
        self.tally["lost in drop"] += self.live()
        numbers = {(id, life.number) for kind in (self.heads, self.twins) for id, life in kind.items()}
        self.heads, self.twins, self.ended = {}, {}, self.ended | numbers

    def _merged(self, event: Any) -> None:
        life = self.twins.pop(event.id)
        assert life.number == event.life
        self.ended |= {(event.id, event.life)}
        self.merged[event.id, event.life] = (event.id, event.details["into"])
        head = self.heads[event.id]
        assert head.number == event.details["into"] and not head.active
        assert event.due == replayed(head.due, self.beside[event.id, event.life]), "T forgot an add"
        head.status, head.due = event.status, event.due

    def _gone(self, event: Any) -> None:
        place = self.heads if self.heads[event.id].number == event.life else self.twins
        assert place[event.id].number == event.life
        assert not place[event.id].active or event.type in ENDS
        assert not place[event.id].active or place[event.id].run == event.run
        self.former = (event.id, event.life)
        del place[event.id]
        self.ended |= {(event.id, event.life)}

    def _end(self, event: Any) -> None:
        self._gone(event)
        if event.type == "failed" and event.task in HANDLED and not event.id.startswith("failure-"):
            self.owed = f"failure-{event.seq}"

    def _step(self, event: Any) -> None:
        head = self.heads[event.id]
        life = head if head.number == event.life else self.twins[event.id]
        if event.type == "started":
            assert life is head and not life.active, "leased twice"
            assert event.run == life.run + 1
            life.active, life.run = True, event.run
        elif event.type in ("retrying", "stalled", "returned"):
            assert life.active and life.run == event.run, "an end without a run, or a second one"
            assert not life.stop, "a run that was asked to stop ended otherwise"
            life.active = False
        else:
            assert event.type in ("updated", "held", "released", "promoted"), event.type
            assert life.number == event.life
            assert not life.active or event.type == "updated"
            life.stop |= "stop" in event.details
        self._moved(life, event)

    def _moved(self, life: Life, event: Any) -> None:
        assert life.number == event.life
        life.status, life.due = event.status, event.due
