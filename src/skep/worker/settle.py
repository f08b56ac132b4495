"""What a worker has to say of its runs at one queue: notes and ends, in batches, one of them under way at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from skep import lifecycle
from skep.core.keys import Keys
from skep.core.outcome import Failed, Outcome, Retried, Succeeded
from skep.store.aio import AsyncStore
from skep.worker.attempt import Attempt
from skep.worker.patience import try_hard

MOST_A_TRIP = 500
MOST_BYTES = 256 << 10

NOTES_REST = 0.02
"""Seconds for which notes wait for others: a handler that logs in a loop makes a trip for many lines, not for each."""

End: TypeAlias = tuple[Attempt, Outcome]
Note: TypeAlias = tuple[str, bytes, str, bytes | str, str, int]


class Listener(Protocol):
    """Who is told when the server has answered."""

    def settled(self, ends: Sequence[End], said: Sequence[bool]) -> None:
        """These ends were taken, or refused where that run was over. Nothing said: nobody knows."""
        ...

    def trouble(self, error: Exception) -> None:
        """The server is away, or refused."""
        ...


class Settler:
    """Sends the ends of runs, and before them what the runs had to say."""

    def __init__(self, store: AsyncStore, keys: Keys, listener: Listener) -> None:
        self._store = store
        self._keys = keys
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._ends: list[End] = []
        self._notes: deque[Note] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._noting = False

    def end(self, attempt: Attempt, outcome: Outcome) -> None:
        """A run is over."""
        self._ends.append((attempt, outcome))
        if self._flushing is None:
            self._flushing = self._loop.create_task(self._flush())

    def note(self, note: Note) -> None:
        """Progress or a log line, from any thread."""
        self._notes.append(note)
        if not self._noting:
            self._noting = True
            # A thread may outlive its worker's loop: nobody hears it any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.call_later, NOTES_REST, self._begin)

    async def done(self) -> None:
        """Returns when all that was said until now is answered."""
        self._begin()
        while self._flushing is not None:
            await asyncio.shield(self._flushing)
            self._begin()

    def stop(self) -> None:
        """Says nothing more."""
        if self._flushing is not None:
            self._flushing.cancel()

    def _begin(self) -> None:
        if self._flushing is None and (self._notes or self._ends):
            self._flushing = self._loop.create_task(self._flush())

    async def _flush(self) -> None:
        try:
            while self._ends or self._notes:
                # What a run had to say was said before its end: notes that are there now go first.
                ends, self._ends = self._ends, []
                if self._notes:
                    await self._send_notes()
                for batch in _trips(ends):
                    await self._send_ends(batch)
        finally:
            self._flushing = None

    async def _send_notes(self) -> None:
        self._noting = False
        # Those that are there now: a handler that never stops talking must not keep the ends of others waiting.
        left = len(self._notes)
        while left:
            notes, size = list[Note](), 0
            while left and len(notes) < MOST_A_TRIP and size < MOST_BYTES:
                notes.append(self._notes.popleft())
                size += len(notes[-1][3])
                left -= 1
            await try_hard(self._store, lifecycle.note(self._keys, notes), self._listener.trouble)

    async def _send_ends(self, ends: Sequence[End]) -> None:
        named = [(attempt.run, outcome) for attempt, outcome in ends]
        call = lifecycle.leave_run(self._keys, ends[0][0].worker, named)
        said = await try_hard(self._store, call, self._listener.trouble)
        self._listener.settled(ends, said or ())


def _trips(ends: Iterable[End]) -> Iterator[list[End]]:
    """In the order in which they came, as much as one trip may carry, and each in the name that the worker had then."""
    batch, size, worker = list[End](), 0, ""
    for end in ends:
        attempt, outcome = end
        if attempt.worker != worker or len(batch) >= MOST_A_TRIP or size > MOST_BYTES:
            if batch:
                yield batch
            batch, size, worker = [], 0, attempt.worker
        batch.append(end)
        if type(outcome) is Succeeded:
            size += len(outcome.result)
        elif isinstance(outcome, Failed | Retried):
            size += len(outcome.error)
    if batch:
        yield batch
