"""A worker that a test plays by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from skep import lifecycle
from skep.core.job import JobError, encode_error
from skep.core.keys import Keys
from skep.core.outcome import Cancelled, Failed, Outcome, Retried, Succeeded
from skep.core.record import pack
from skep.lifecycle import Run
from skep.store.connect import Connection
from skep.store.sync import Store

LEASE = 600_000


class Hand:
    """Takes jobs of a queue and ends their runs, one call at a time."""

    def __init__(self, name: str, url: str, *knows: str) -> None:
        self.keys = Keys(name)
        self.store = Store(Connection(url))
        self.knows = pack(["", *knows])
        self.number = 0
        self.store.send(lifecycle.join(self.keys, "hand", lease=LEASE, info={}))

    def take(self, slots: int = 1) -> list[Run]:
        """The next jobs."""
        self.number += 1
        claim = lifecycle.claim(self.keys, "hand", number=self.number, slots=slots, lease=LEASE, knows=self.knows)
        claimed = self.store.send(claim)
        assert claimed is not None
        return claimed.runs

    def end(self, run: Run, outcome: Outcome) -> None:
        """One run ends."""
        assert self.store.send(lifecycle.leave_run(self.keys, "hand", [(run, outcome)])) == [True]

    def succeed(self, result: Any = None) -> str:
        """Takes the next job and ends it well; gives its id."""
        [run] = self.take()
        self.end(run, Succeeded(msgspec.json.encode(result)))
        return run.id

    def fail(self, message: str = "no") -> str:
        """Takes the next job and fails it for good; gives its id."""
        [run] = self.take()
        self.end(run, Failed(encode_error(JobError(type="ValueError", message=message))))
        return run.id

    def report(self, run: Run, value: Any) -> None:
        """A run says how far it is."""
        note = (run.id, run.lease, "p", msgspec.json.encode(value), "", 0)
        assert self.store.send(lifecycle.note(self.keys, [note])) == "y"

    def retry(self, after: int = 60_000) -> str:
        """Takes the next job, which fails and waits for its retry; gives its id."""
        [run] = self.take()
        self.end(run, Retried(after, encode_error(JobError(type="ValueError", message="again"))))
        return run.id

    def cancel(self, reason: str = "enough") -> str:
        """Takes the next job, whose handler cancels it; gives its id."""
        [run] = self.take()
        self.end(run, Cancelled(reason))
        return run.id

    def close(self) -> None:
        self.store.close()
