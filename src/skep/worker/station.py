"""A worker's place at one queue: what it can run there, what runs, and what the server says of it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from time import monotonic
from typing import Any

from skep import lifecycle, views
from skep.core.job import JobError, encode_error
from skep.core.outcome import Failed, Outcome, Returned, kept
from skep.core.record import FIRST_LETTER, TASK, read_head
from skep.lifecycle import Claimed, Renewed, Run, Wanted
from skep.store.aio import AsyncStore
from skep.worker.attempt import Attempt, Cause
from skep.worker.bench import Bench
from skep.worker.hooks import WorkerEvent
from skep.worker.leaving import leave
from skep.worker.plan import Rules
from skep.worker.post import Post
from skep.worker.repertoire import Repertoire
from skep.worker.served import Served
from skep.worker.settle import End, Settler

log = logging.getLogger("skep.worker")

PLAIN = FIRST_LETTER + TASK
"""What the record of a job begins with that has a task, and nothing else said of it."""


class Station:
    """Begins runs that were claimed, and says how they ended.

    `upkeep` is told of due times that the server wants, `poke` that a claim is due, `joined` of each registration that
    begins, or was given back.
    """

    def __init__(self, served: Served, bench: Bench, store: AsyncStore) -> None:
        self.queue = served.name
        self.keys = served.keys
        self.priority = served.priority
        self.store = store
        self.bench = bench
        self.state: Any = bench.state
        self.post: Post | None = None
        self.stopping = False
        self.upkeep: Callable[[Sequence[Wanted]], None] = lambda _: None
        self.poke: Callable[[], None] = lambda: None
        self.joined: Callable[[str, bool], None] = lambda worker, left: None
        self.repertoire = Repertoire(served, bench)
        self._settler = Settler(store, self.keys, self)
        self._joining: asyncio.Task[Post] | None = None
        self._ahead = 0.0  # milliseconds of the server's clock at our zero

    # Its registration.

    @property
    def worker(self) -> str:
        """Its name there, for now."""
        return self.post.name if self.post is not None else ""

    async def join(self) -> Post:
        """Registers under a new name."""
        await self.read_settings()
        lease = self.bench.options.lease_ms
        post = Post(monotonic() + lease / 1000)
        await self.store.send(views.enrol(self.keys))
        now = await self.store.send(lifecycle.join(self.keys, post.name, lease=lease, info=self.info()))
        self._set_clock(now)
        self.post = post
        self.joined(post.name, False)
        return post

    async def at_post(self) -> Post:
        """Its registration; where it was fenced, the one that follows."""
        while self.post is None and self._joining is not None:
            await asyncio.shield(self._joining)
        return self.post or await self.join()

    async def read_settings(self) -> None:
        """Learns by which settings of the queue runs go from now on."""
        self.repertoire.go_by(await self.store.send(views.settings(self.keys)))

    def info(self) -> Mapping[str, Any]:
        """What it tells of itself."""
        slots = self.bench.options.concurrency
        return {"host": socket.gethostname(), "pid": os.getpid(), "version": version("skep"), "slots": slots}

    async def leave(self) -> None:
        """Hands back what it still holds, and its registration."""
        if self._joining is not None:
            self._joining.cancel()
        if self.post is not None:
            post, self.post = self.post, None
            await self.store.run(leave(self.keys, post.name))
            self.joined(post.name, True)

    # Runs.

    def begin(self, post: Post, claimed: Claimed) -> None:
        """Runs that were claimed begin."""
        self._set_clock(claimed.now)
        for run in claimed.runs:
            post.held[run.id] = run.lease
        # Behind the runs, since a renewal that comes between must not leave them out.
        post.answered = post.number
        for run in claimed.runs:
            self._start(post.name, run)
        if claimed.wanted:
            self.upkeep(claimed.wanted)

    def _start(self, worker: str, run: Run) -> None:
        raw, plans = run.record, self.repertoire.plans
        if raw[0] == PLAIN:
            at = 8 + raw[7]
            plan = plans[raw[8:at]]
            rules = plan.rules
        else:
            try:
                head, at = read_head(raw)
                plan = plans[head.task.encode()]
                rules = plan.rules.under(head.options)
            except Exception as error:  # noqa: BLE001 - whatever another release wrote, its run must end
                self._set_aside(worker, run, error)
                return
        attempt = Attempt(self, worker, run, plan, rules, at)
        self.bench.runs.add(attempt)
        if self.stopping:
            self._end_now(attempt, Returned())
        elif plan.gate is not None:
            plan.gate.enter(attempt)
        else:
            self.bench.launch(attempt)

    def _set_aside(self, worker: str, run: Run, error: Exception) -> None:
        log.error("%s: the record of job %r cannot be read", self.queue, run.id, exc_info=error)
        told = JobError(type="WrongData", message=f"its record cannot be read: {error}", kind="permanent")
        attempt = Attempt(self, worker, run, next(iter(self.repertoire.plans.values())), Rules(), 0)
        attempt.error = error
        self._end_now(attempt, Failed(encode_error(told)))

    def _end_now(self, attempt: Attempt, outcome: Outcome) -> None:
        self.bench.runs.discard(attempt)
        self.bench.slots.release()
        self._settler.end(attempt, outcome)

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """An attempt is over. What a lost one says, nobody hears."""
        bench, gate = self.bench, attempt.plan.gate
        bench.runs.discard(attempt)
        bench.slots.release()
        if gate is not None:
            gate.leave(attempt)
        if attempt.cause is not Cause.LOST:
            keep = attempt.rules.keep
            self._settler.end(attempt, outcome if keep is None else kept(outcome, keep))

    def note(self, attempt: Attempt, kind: str, text: bytes | str, level: str) -> None:
        """Progress or a log line, from any thread."""
        if attempt.cause is Cause.LOST:
            return
        self._settler.note((attempt.id, attempt.run.lease, kind, text, level, attempt.rules.max_logs))
        hooks = self.bench.hooks
        if kind == "p" and "progress" in hooks:
            event = WorkerEvent("progress", self.queue, attempt.job, bytes(text) if isinstance(text, bytes) else None)
            self.bench.loop.call_soon_threadsafe(hooks.tell, event)

    def settled(self, ends: Sequence[End], said: Sequence[bool]) -> None:
        """Ends were answered."""
        if self.post is not None:
            held = self.post.held
            for attempt, _ in ends:
                run = attempt.run
                # The id may run here again already, under another lease.
                if held.get(run.id) == run.lease:
                    del held[run.id]
        self.bench.teller.ended(ends, said)

    def running(self) -> list[str]:
        """The ids of what runs here."""
        return [attempt.id for attempt in self._mine()]

    async def all_said(self) -> None:
        """Returns when all that was to be said is answered."""
        await self._settler.done()

    # What the server says of it.

    def renewed(self, post: Post, named: Mapping[str, bytes], reply: Renewed | None) -> None:
        """A renewal that named these runs was answered."""
        if reply is None:
            self.fenced(post)
            return
        if post is not self.post:
            return
        self._set_clock(reply.now)
        for id in reply.lost:
            self._lose(post, id, named[id])
        for attempt in self._runs_of(reply.stop):
            attempt.stop(Cause.CANCEL)
        if reply.wanted:
            self.upkeep(reply.wanted)
        if reply.aside:
            self.poke()

    def fenced(self, post: Post) -> None:
        """Its registration is over: so are its runs. It begins anew under another name."""
        if post is not self.post:
            return
        log.warning("%s: this worker (%s) was taken for dead; its runs are stopped", self.queue, post.name)
        self.post = None
        if "stalled" in self.bench.hooks:
            for attempt in self._mine():
                self.bench.hooks.tell(WorkerEvent("stalled", self.queue, attempt.job))
        self._stop_all()
        if not self.stopping:
            self._joining = self.bench.loop.create_task(self._rejoin())

    def silent(self, post: Post) -> None:
        """It could not renew: its runs end before its lease does. Those that have ended are still to be told of."""
        if post is self.post and self._mine():
            log.error("%s: this worker cannot renew its lease; its runs are stopped", self.queue)
            for attempt in self._mine():
                self._lose(post, attempt.id, attempt.run.lease)

    def hand_back(self) -> None:
        """Its runs are told to end, and are returned; so is what a late claim may still bring."""
        self.stopping = True
        for attempt in self._mine():
            attempt.stop(Cause.RETURN)

    async def _rejoin(self) -> Post:
        while True:
            try:
                return await self.join()
            except Exception as error:  # noqa: BLE001 - without a registration nothing works: it is tried for ever
                self.trouble(error)
                await asyncio.sleep(1)

    def _lose(self, post: Post, id: str, lease: bytes) -> None:
        for attempt in self._runs_of([id]):
            if attempt.run.lease == lease:
                post.forget(id, lease)
                attempt.stop(Cause.LOST)

    def _stop_all(self) -> None:
        for attempt in self._mine():
            attempt.stop(Cause.LOST)

    def _mine(self) -> list[Attempt]:
        return [attempt for attempt in self.bench.runs if attempt.place is self]

    def _runs_of(self, ids: Sequence[str]) -> list[Attempt]:
        return [attempt for attempt in self._mine() if attempt.id in ids] if ids else []

    # The rest.

    def trouble(self, error: Exception) -> None:
        """The server is away, or refused."""
        self.bench.trouble(error, self.queue)

    def server_ms(self) -> int:
        """About what the server's clock shows."""
        return int(self._ahead + monotonic() * 1000)

    def _set_clock(self, now: int) -> None:
        self._ahead = now - monotonic() * 1000
