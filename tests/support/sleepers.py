"""Workers that do nothing but claim, wait and end runs: as `worker/fetch.py` does it, in threads of other processes.

They never renew, and a marker is waited for without end: whoever is not woken by the protocol sleeps on.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from skep import lifecycle
from skep.core.outcome import Succeeded
from skep.core.record import pack
from tests.support.engine import Engine

LEASE = 3_600_000
HELD, QUICK = "held", "quick"
"""Data of jobs: one ends when it is told to, the other soon."""


@dataclass(frozen=True)
class Swap:
    """A deliberate bug: a text of the scripts, and what is sent in its place."""

    right: str
    wrong: str

    def __call__(self, _: str, source: str) -> str:
        return source.replace(self.right, self.wrong)


@dataclass(frozen=True)
class Terms:
    """What a process is told: its workers' slots and tasks, the server's path, the queue, dice and a bug."""

    path: str
    queue: str
    slots: Sequence[int]
    knows: Sequence[Sequence[str]]
    seed: int
    bug: Swap | None = None


class Sleeper:
    """One worker: a thread that listens while it is idle, and one that claims."""

    def __init__(self, terms: Terms, number: int) -> None:
        self._name = f"w{terms.seed}x{number}"
        self._engine = Engine(terms.path, terms.queue, mutate=terms.bug)
        self._ear = Engine(terms.path, terms.queue)
        self._ear.connection.socket_timeout = None
        self._engine.own_clock = True
        self._knows = pack(list(terms.knows[number]))
        self._dice = random.Random(1000 * terms.seed + number)
        self._turn = threading.Condition()
        self._idle = threading.Event()
        self._free = terms.slots[number]
        self._hungry, self._woken = True, False
        self._told = set[str]()
        self._alarm: float | None = None
        self._quick: list[tuple[float, lifecycle.Run]] = []
        self._held: list[lifecycle.Run] = []
        self._number = 0

    def start(self) -> None:
        """Returns when it has joined."""
        self._engine.send(lifecycle.join(self._engine.keys, self._name, lease=LEASE, info={}))
        for loop in (self._listen, self._work):
            threading.Thread(target=_for_ever, args=(loop,), daemon=True).start()

    def end(self, ids: Collection[str]) -> None:
        """What it holds of these ends."""
        with self._turn:
            self._told.update(ids)
            self._turn.notify()

    def _listen(self) -> None:
        self._idle.wait()
        self._ear.command("BLPOP", self._ear.keys.wake, 0)
        with self._turn:
            self._woken = True
            self._turn.notify()

    def _work(self) -> None:
        with self._turn:
            self._turn.wait_for(self._has_work, self._rest())
            told, self._told = self._told, set()
        self._end_runs(told)
        if self._alarm is not None and self._alarm <= time.monotonic():
            self._woken, self._alarm = True, None
        if self._woken or (self._hungry and self._free):
            self._claim()

    def _has_work(self) -> bool:
        return bool(self._told) or self._woken or (self._hungry and self._free > 0)

    def _rest(self) -> float | None:
        times = [at for at, _ in self._quick] + ([] if self._alarm is None else [self._alarm])
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _end_runs(self, told: Collection[str]) -> None:
        over = [run for at, run in self._quick if at <= time.monotonic()]
        self._quick = [each for each in self._quick if each[1] not in over]
        over += [run for run in self._held if run.id in told]
        self._held = [run for run in self._held if run.id not in told]
        if over:
            ends = [(run, Succeeded(b"null")) for run in over]
            assert all(self._engine.send(lifecycle.leave_run(self._engine.keys, self._name, ends), self._name))
            self._free += len(over)

    def _claim(self) -> None:
        with self._turn:
            self._woken = False
        self._idle.clear()
        self._number += 1
        claimed = self._engine.send(
            lifecycle.claim(
                self._engine.keys,
                self._name,
                number=self._number,
                slots=self._free,
                lease=LEASE,
                knows=self._knows,
            )
        )
        assert claimed is not None
        self._hungry = len(claimed.runs) >= self._free
        self._free -= len(claimed.runs)
        for run in claimed.runs:
            if run.record.endswith(b'"held"'):
                self._held.append(run)
            else:
                self._quick.append((time.monotonic() + self._dice.choice((0, 0, 0.001, 0.004, 0.008)), run))
        rest = max(0, claimed.head - claimed.now) / 1000
        self._alarm = time.monotonic() + rest if claimed.head else None
        if not self._hungry:
            self._idle.set()


def _for_ever(step: Callable[[], None]) -> None:
    try:
        while True:
            step()
    except Exception:  # noqa: BLE001 - a process without one of its workers would look like a lost wake-up
        traceback.print_exc()
        os._exit(1)


def _serve(terms: Terms, pipe: Connection) -> None:
    sleepers = [Sleeper(terms, number) for number in range(len(terms.slots))]
    for sleeper in sleepers:
        sleeper.start()
    pipe.send("ready")
    while True:
        ids = pipe.recv()
        for sleeper in sleepers:
            sleeper.end(ids)


class Sleepers:
    """Processes full of them, from `with` to its end."""

    def __init__(self, *terms: Terms) -> None:
        self._terms = terms
        self._pipes: list[Connection] = []
        self._stack = ExitStack()

    def __enter__(self) -> Sleepers:
        context: Any = multiprocessing.get_context("spawn")
        with ExitStack() as stack:
            for terms in self._terms:
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(terms, theirs), daemon=True)
                process.start()
                stack.callback(ours.close)
                stack.callback(_end, process)
                theirs.close()
                self._pipes.append(ours)
            for pipe in self._pipes:
                assert pipe.poll(30), "a process did not start"
                assert pipe.recv() == "ready"
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def end(self, ids: Collection[str]) -> None:
        """Held runs end, wherever they are."""
        for pipe in self._pipes:
            pipe.send(ids)


def _end(process: Any) -> None:
    process.kill()
    process.join()
    process.close()
