"""The state machine of one skep queue, as the contract tells it, in the plainest Python.

A reference to argue with and an oracle for property tests: no I/O, no threads, no clock. The caller sets
`now` (milliseconds) before a call. Every record is frozen, so a shallow copy of a Model's attributes is a
snapshot of it. A remark that begins with READING marks a place where the contract can be read in several
ways.

The file is long because it is one table, of what each operation does to a job in each state, told once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from operator import itemgetter
from typing import Any, Literal

LEASE = 30_000
MEMORY_OF_LANES = 7_200_000
RETENTION = {"succeeded": 3_600_000, "failed": 7 * 86_400_000, "cancelled": 3_600_000}
HIGH, NORMAL = 20, 40
UNKNOWN_TASK = "unknown task"
OPTIONS = frozenset({"meta", "priority", "retries", "max_stalls", "keep", "expires", "lasts", "series"})


class Status(StrEnum):
    WAITING = "waiting"
    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    HELD = "held"
    ACTIVE = "active"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


LATER = {Status.SCHEDULED, Status.RETRYING}
IDLE = {Status.WAITING, *LATER}
FINISHED = {Status.SUCCEEDED, Status.FAILED, Status.CANCELLED}
LIVE = set(Status) - FINISHED


class Outcome(StrEnum):
    """How a run ends. All but the last two are what the handler did."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # raised, timed out, Retry(count=True): tried again if a retry is left
    FAILED_FOR_GOOD = "failed for good"  # PermanentError and its like
    POSTPONED = "postponed"  # Retry(count=False)
    CANCELLED = "cancelled"  # raise Cancelled, or stopped on request
    STALLED = "stalled"  # its worker died or fell silent
    RETURNED = "returned"  # its worker stops, or never heard of it


class SkepError(Exception):
    """A refusal: JobExists, JobActive or ReservedId, and of which id; or Stale, and of which lane.

    Nothing was changed.
    """


@dataclass(frozen=True)
class Update:
    """What an add may change of an unfinished job that has its id."""

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    options: bool | frozenset[str] = True
    counts: bool | None = None

    def allows(self, name: str) -> bool:
        # READING: `task` goes with the data it is for, `slot` with the terms of its series; an option that
        # the add does not name stays as it is.
        if name in ("data", "task"):
            return self.data
        name = "series" if name == "slot" else name
        return name in self.options if isinstance(self.options, frozenset) else self.options

    def change(self, due: int, values: Mapping[str, Any]) -> Change:
        """What an add with these flags does to a job that is there already."""
        counts = self.data if self.counts is None else self.counts
        earliest = due if self.run_at in (True, "if_later") else -inf
        latest = due if self.run_at in (True, "if_earlier") else inf
        allowed = {name: value for name, value in values.items() if self.allows(name)}
        return Change(allowed, counts, earliest, latest)


@dataclass(frozen=True)
class Change:
    """The effect of one add, or of several, on a waiting job.

    Setting a time, moving it later and moving it earlier are all `min(max(due, earliest), latest)`, so two
    numbers remember any sequence of run_at flags exactly.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    counts: bool = False
    earliest: float = -inf
    latest: float = inf

    def clamp(self, due: float) -> Any:
        return min(max(due, self.earliest), self.latest)

    def then(self, later: Change) -> Change:
        return Change(
            {**self.values, **later.values},
            self.counts or later.counts,
            later.clamp(self.earliest),
            later.clamp(self.latest),
        )

    def on(self, job: Job) -> Job:
        zero: dict[str, Any] = {"failures": 0, "stalls": 0} if self.counts else {}
        return replace(job, due=self.clamp(job.due), **zero, **self.values)


@dataclass(frozen=True)
class Series:
    """One run after another under one id: `repeat` more of them (True: for ever), by delay or by cron."""

    repeat: int | bool = True
    every: int = 300_000
    cron: Callable[[int], int] | None = None  # the first due time after the given one

    def after(self, job: Job, now: int) -> int:
        """When the next life is due: missed times run once, a run made early uses none up."""
        if self.cron is None:
            return now + self.every
        return max(now, self.cron(min(job.slot, now if job.began is None else job.began)))

    @property
    def rest(self) -> Series:
        return self if self.repeat is True else replace(self, repeat=self.repeat - 1)


@dataclass(frozen=True)
class Run:
    """One claim of a life.

    READING: it names worker and claim too, because a server that lost acknowledged writes hands out the same
    life and run number again.
    """

    id: str
    life: int
    number: int
    worker: str
    claim: int


@dataclass(frozen=True)
class Job:
    """One life of an id."""

    id: str
    life: int
    due: int
    slot: int  # the due time this life was made for; promoting and moving it do not change it
    data: Any = None
    task: str = ""
    meta: Any = None
    priority: int = NORMAL
    retries: int = 10
    max_stalls: int = 3
    keep: int | bool | None = None
    expires: int | None = None  # the instant
    lasts: int | None = None  # the same as a duration, for the later lives of a series
    series: Series | None = None
    status: Status = Status.SCHEDULED
    reason: str = ""
    place: int = 0  # the lower the sooner, among equals in priority
    runs: int = 0
    failures: int = 0
    stalls: int = 0
    began: int | None = None  # when its first run began
    finished: int | None = None
    stop: bool = False  # a cancel has been asked for while it ran
    lease: Run | None = None
    granted: int = 0  # retries as its run was told when it began: its worker decides by them
    ripe: bool = True  # of a job set aside: its time has come
    change: Change = Change()  # of a twin: all that its adds would do to a waiting job
    previous: Job | None = None


@dataclass(frozen=True)
class Event:
    """A job event carries status and due time as they are after it."""

    seq: int
    at: int
    type: str
    id: str
    life: int
    run: int
    task: str
    status: str
    due: int
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Added:
    outcome: Literal["added", "updated", "blocked", "ignored"]
    id: str
    life: int


@dataclass(frozen=True)
class Call:
    """The last call of a lane, and what it was answered: a refusal is an answer too."""

    number: int
    answer: Any
    at: int


@dataclass(frozen=True)
class Worker:
    """A joined worker and its lease."""

    until: int
    claim: int = 0  # the number of its last claim


class Model:
    """One queue. `jobs` holds the one record of each known id, `twins` the second job of an active one."""

    def __init__(self, now: int = 0, failure_handlers: Collection[str] = ()) -> None:
        self.now = self.clock_seen = self.last_renewal = now
        self.jobs: dict[str, Job] = {}
        self.twins: dict[str, Job] = {}
        self.workers: dict[str, Worker] = {}
        self.calls: dict[str, Call] = {}
        self.events: list[Event] = []
        self.failure_handlers = frozenset(failure_handlers)
        self.paused = False
        self.front = self.back = 0
        self.rank: Mapping[str, int] = {}  # ids in the order in which a server came by the runs of dead workers

    # Clients. `call` is how they reach every method of this part.

    def call(self, lane: str, number: int, operation: str, *args: Any, **options: Any) -> Any:
        """A call in its lane: sent again it changes nothing and is answered alike; a late copy is refused."""
        last = self.calls.get(lane)
        if last and number < last.number:
            raise SkepError("Stale", lane)
        if not (last and number == last.number):
            try:
                last = Call(number, getattr(self, operation)(*args, **options), self.now)
            except SkepError as refusal:
                last = Call(number, refusal, self.now)
            self.calls[lane] = last
        if isinstance(last.answer, SkepError):
            raise last.answer
        return last.answer

    def add(
        self,
        id: str,
        *,
        on_conflict: Update | Literal["ignore", "raise"] = Update(),
        due: int | None = None,
        generated: bool = False,
        **values: Any,
    ) -> Added:
        if id.startswith(("failure-", "cron:")):
            raise SkepError("ReservedId", id)
        job, twin = self.jobs.get(id), self.twins.get(id)
        if job and on_conflict == "raise":
            raise SkepError("JobExists", id)
        if job and on_conflict == "ignore":
            return Added("ignored", id, job.life)
        due, values = self._resolve(due, values)
        born: dict[str, Any] = {"slot": due} | values
        if job is None or job.status in FINISHED:
            job = self._begin(Job(id, 0, due, previous=bare(job), **born), "added", generated)
            return Added("added", id, job.life)
        assert isinstance(on_conflict, Update)
        change = on_conflict.change(due, values)
        there = twin or job
        if there.status is not Status.ACTIVE:
            self._log("updated", self._amend(there, change))
            return Added("updated", id, there.life)
        twin = self._begin(Job(id, 0, due, change=change, **born), "blocked")
        return Added("blocked", id, twin.life)

    def update(self, id: str, *, twin: bool = False, due: int | None = None, **values: Any) -> bool:
        """READING: of an active job `due` is refused like `data`: its run decides when the next is due."""
        states = set(Status) if values.keys() == {"meta"} and due is None else LIVE
        if not (job := self._find(id, states, twin)):
            return False
        if job.status is Status.ACTIVE and (due is not None or {"data", "task"} & values.keys()):
            raise SkepError("JobActive", id)
        change = Change(values) if due is None else Change(values, False, due, due)
        self._log("updated", self._amend(job, change))
        return True

    def cancel(self, id: str, *, twin: bool = False, keep: int | None = None) -> bool:
        if not (job := self._find(id, LIVE, twin)):
            return False
        job = replace(job, series=None, keep=job.keep if keep is None else keep)
        if job.status is not Status.ACTIVE:
            self._over(job, Status.CANCELLED, "on request")
            return True
        self.jobs[id] = replace(job, stop=True)
        # READING: the contract names no event for a stop request.
        self._log("updated", self.jobs[id], stop=True)
        if id in self.twins:
            self.cancel(id, twin=True)
        return True

    def hold(self, id: str) -> bool:
        if not (job := self._find(id, IDLE)):
            return False
        self._hold(job, "by hand")
        return True

    def release(self, id: str) -> bool:
        if not (job := self._find(id, {Status.HELD})):
            return False
        self._wait(replace(job, reason=""), "released")
        return True

    def promote(self, id: str) -> bool:
        if not (job := self._find(id, LATER)):
            return False
        self._wait(replace(job, due=self.now), "promoted")
        return True

    def retry(self, id: str) -> bool:
        """READING: it is due now and no longer expires (an expired one would do so at once)."""
        if not (job := self._find(id, FINISHED)):
            return False
        self._begin(fresh(job, due=self.now, expires=None, lasts=None), "revived")
        return True

    def remove(self, id: str, *, twin: bool = False) -> bool:
        if not (job := self._find(id, set(Status) - {Status.ACTIVE}, twin)):
            return False
        del (self.twins if twin else self.jobs)[id]
        self._log("removed", job)
        return True

    def empty(self) -> int:
        removable = {*IDLE, Status.HELD}
        gone = [(job.id, False) for job in self.jobs.values() if job.status in removable]
        gone += [(id, True) for id in self.twins]
        return sum(self.remove(id, twin=twin) for id, twin in gone)

    def drop(self) -> None:
        """READING: workers, settings and numbers of connections stay; the event counts the lives it ended."""
        live = sum(job.status in LIVE for job in self.jobs.values()) + len(self.twins)
        self.jobs, self.twins = {}, {}
        self._log("dropped", live=live)

    def pause(self) -> None:
        if not self.paused:
            self.paused = True
            self._log("paused")

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._log("resumed")

    def counts(self) -> dict[str, int]:
        seen = Counter(str(job.status) for job in [*self.jobs.values(), *self.twins.values()])
        return {status: seen[status] for status in Status} | {"total": sum(seen.values())}

    # Workers. Each of these calls first does the housekeeping, as `tick`. None for an answer: you are fenced.

    def join(self, worker: str) -> None:
        self.tick()
        self.last_renewal = self.now
        if worker not in self.workers:
            self.workers[worker] = Worker(self.now + LEASE)
            self._log("joined", worker=worker)

    def leave(self, worker: str, *, died: bool = False) -> None:
        """It stops and gives back what it has; or its supervisor reports its death, which is a stall."""
        outcome = Outcome.STALLED if died else Outcome.RETURNED
        for run in self._runs_of(worker):
            if not self._asks(run, outcome):
                self.leave_run(run, outcome)
        if self.workers.pop(worker, None):
            self._log("left", worker=worker)
        for run in self._runs_of(worker):
            self.leave_run(run, outcome)

    def claim(self, worker: str, number: int, n: int, knows: Collection[str]) -> list[Run] | None:
        """At most n runs. The same number again gets the same runs, as far as they are still the worker's."""
        self.tick()
        if worker not in self.workers:
            return None
        if number > self.workers[worker].claim:
            self.workers[worker] = replace(self.workers[worker], claim=number)
            self._take(worker, number, 0 if self.paused else n, knows)
        return [run for run in self._runs_of(worker) if run.claim == number]

    def renew(self, worker: str, named: Collection[Run], answered: int) -> tuple[list[Run], list[Run]] | None:
        """Which of the named runs are lost, and which were asked to stop.

        READING: a worker names a run until its settling has been answered, else a renewal that overtakes it
        would give the run back.
        """
        self.tick()
        if worker not in self.workers:
            return None
        self.last_renewal = self.now
        self.workers[worker] = replace(self.workers[worker], until=self.now + LEASE)
        for run in self._runs_of(worker):
            if run.claim <= answered and run not in named:
                self.leave_run(run, Outcome.RETURNED)
        lost = [run for run in named if not self._owns(run)]
        stop = [run for run in named if self._owns(run) and self.jobs[run.id].stop]
        return lost, stop

    def leave_run(self, run: Run, outcome: Outcome, *, after: int = 0) -> bool:
        """The end of a run, whoever reports it; False if it had ended before. Only `drop` does without."""
        if not self._owns(run):
            return False
        job = self.jobs[run.id]
        failed = outcome in (Outcome.FAILED, Outcome.FAILED_FOR_GOOD)
        stalls = job.stalls + (outcome is Outcome.STALLED)
        job = replace(job, lease=None, failures=job.failures + failed, stalls=stalls)
        end = verdict(job, outcome)
        if end:
            self._over(job, end, outcome)
        elif outcome is Outcome.RETURNED:
            self._wait(replace(job, due=self.now), "returned", front=True)
        elif outcome is Outcome.STALLED:
            self._wait(replace(job, due=self.now), "stalled")
        else:
            self._wait(replace(job, due=self.now + after), "retrying")
        if not end and run.id in self.twins:
            self._merge(self.twins.pop(run.id))
        return True

    # Housekeeping

    def tick(self) -> None:
        """All that time brings, in one pass; a server does it in slices, with every claim and renewal."""
        self._watch_the_clock()
        fenced = [(known.until, name) for name, known in self.workers.items() if known.until <= self.now]
        for _, worker in sorted(fenced):
            del self.workers[worker]
            self._log("fenced", worker=worker)
        for run in self._runs_of(*(worker for _, worker in fenced)):
            self.leave_run(run, Outcome.STALLED)
        for _, job in sorted(self._expired(), key=itemgetter(0)):
            self._over(job, Status.CANCELLED, "expired")
        for job in sorted(self.jobs.values(), key=lambda job: (job.due, job.status is Status.RETRYING, job.id)):
            if job.status in LATER and job.due <= self.now:
                self._wait(job, None)
            elif job.due <= self.now and not job.ripe:
                self.jobs[job.id] = replace(job, ripe=True)
        self.jobs = {id: job for id, job in self.jobs.items() if not self._is_stale(job)}
        forgotten = self.now - MEMORY_OF_LANES
        self.calls = {name: call for name, call in self.calls.items() if call.at > forgotten}

    def _expired(self) -> Iterator[tuple[tuple[int, bool, str], Job]]:
        """In the order of their times; a job before a twin."""
        for job in [*self.jobs.values(), *self.twins.values()]:
            if job.status in LIVE and job.runs == 0 and job.expires is not None and job.expires <= self.now:
                yield (job.expires, job.status is Status.BLOCKED, job.id), job

    def _watch_the_clock(self) -> None:
        """After a silence, or a backward step, nobody can be blamed for not having renewed."""
        silent = self.now - self.last_renewal > LEASE // 2
        if silent or self.now < self.clock_seen:
            self.last_renewal = self.now
            until = self.now + LEASE
            self.workers = {name: replace(known, until=until) for name, known in self.workers.items()}
        self.clock_seen = self.now

    def _is_stale(self, job: Job) -> bool:
        if job.finished is None or job.keep is True:
            return False
        return job.finished + (RETENTION[job.status] if job.keep is None else job.keep) <= self.now

    # The moves that the operations are made of

    def _begin(self, job: Job, event: str, generated: bool = False) -> Job:
        """A life begins; it is named after its event."""
        job = replace(job, life=0 if generated else len(self.events) + 1)
        return self._block(job, event) if event == "blocked" else self._wait(job, event)

    def _block(self, twin: Job, event: str) -> Job:
        self.twins[twin.id] = replace(twin, status=Status.BLOCKED)
        self._log(event, self.twins[twin.id])
        return self.twins[twin.id]

    def _wait(self, job: Job, event: str | None, *, front: bool = False) -> Job:
        """The way into W, S or R: by its time and its failures. Becoming due leaves no event."""
        late = Status.RETRYING if job.failures else Status.SCHEDULED
        status = Status.WAITING if job.due <= self.now else late
        self.front, self.back = (self.front - 1, self.back) if front else (self.front, self.back + 1)
        place = self.front if front else self.back
        self.jobs[job.id] = replace(job, status=status, place=place, reason="", ripe=True)
        if event:
            self._log(event, self.jobs[job.id])
        return self.jobs[job.id]

    def _hold(self, job: Job, reason: str) -> None:
        self.jobs[job.id] = replace(job, status=Status.HELD, reason=reason)
        self._log("held", self.jobs[job.id])

    def _take(self, worker: str, claim: int, n: int, knows: Collection[str]) -> None:
        """READING: jobs set aside go to the front of their priority when a worker comes by that knows them,
        at most n of them; they wait for their time if that was moved."""
        if n:
            self._bring_back(n, knows)
        taken: list[Job] = []
        ready = [job for job in self.jobs.values() if job.status is Status.WAITING]
        for job in sorted(ready, key=lambda job: (job.priority, job.place)):
            if len(taken) < n and job.task not in knows:
                self._hold(job, UNKNOWN_TASK)
            elif len(taken) < n:
                taken.append(job)
        for job in taken:
            self._start(job, Run(job.id, job.life, job.runs + 1, worker, claim))

    def _bring_back(self, n: int, knows: Collection[str]) -> None:
        for task in knows:
            aside = sorted(id for id, job in self.jobs.items() if job.reason == UNKNOWN_TASK and job.task == task)
            back = [id for id in aside if self.jobs[id].ripe][:n]
            n -= len(back)
            for id in reversed(back):
                self._wait(self.jobs[id], "released", front=True)

    def _start(self, job: Job, run: Run) -> None:
        began = self.now if job.began is None else job.began
        job = replace(job, status=Status.ACTIVE, runs=run.number, began=began, lease=run, granted=job.retries)
        self.jobs[job.id] = job
        self._log("started", job, worker=run.worker)

    def _amend(self, job: Job, change: Change) -> Job:
        """Change a job where it is: it keeps its place unless its priority changes or its time moves it."""
        after = change.on(job)
        if job.status is Status.BLOCKED:
            self.twins[job.id] = replace(after, change=job.change.then(change))
            return self.twins[job.id]
        # READING: a waiting job that is told to run now is already doing so.
        still_due = job.status is Status.WAITING and (after.due <= self.now or after.due == job.due)
        if job.status in IDLE and not (still_due and after.priority == job.priority):
            return self._wait(after, None)
        if job.reason == UNKNOWN_TASK:
            after = replace(after, ripe=after.due <= self.now)
        self.jobs[job.id] = after
        return after

    def _merge(self, twin: Job) -> None:
        """The twin's adds happen to the job that waits, as if they came now; its own life is over."""
        job = self._amend(self.jobs[twin.id], twin.change)
        self._log("merged", replace(job, life=twin.life), into=job.life)

    def _over(self, job: Job, status: Status, reason: str) -> None:
        """A life ends. READING: only cancelling and removing end a series, expiring does not."""
        ended = replace(job, status=status, reason=reason, finished=self.now)
        event = self._log(status, ended, reason=reason)
        if status is Status.FAILED and self._has_a_failure_handler(job):
            self._write_failure_job(event, ended)
        follows = self._next_life(ended)
        if job.status is Status.BLOCKED:
            del self.twins[job.id]
            if follows:
                owed = Change(earliest=follows.due, latest=follows.due)
                self._block(replace(follows, change=job.change.then(owed)), "repeated")
            return
        self.jobs[job.id] = ended
        twin = self.twins.pop(job.id, None)
        if follows:
            self._wait(follows, "repeated")
            if twin:
                self._merge(twin)
        elif twin:
            self._wait(replace(twin, change=Change(), previous=bare(ended)), "unblocked")
        elif ended.keep is not None and not ended.keep:
            del self.jobs[job.id]

    def _next_life(self, job: Job) -> Job | None:
        if job.series is None or not job.series.repeat:
            return None
        due = job.series.after(job, self.now)
        expires = None if job.lasts is None else due + job.lasts
        return fresh(job, life=len(self.events) + 1, due=due, expires=expires, series=job.series.rest)

    def _write_failure_job(self, event: Event, failed: Job) -> None:
        job = Job(f"failure-{event.seq}", 0, self.now, self.now, priority=HIGH)
        job = replace(job, data=bare(failed), task=f"on_failure:{failed.task}")
        self._begin(job, "added", generated=True)

    # Small helpers

    def _has_a_failure_handler(self, job: Job) -> bool:
        return job.task in self.failure_handlers and not job.id.startswith("failure-")

    def _find(self, id: str, states: Collection[Status], twin: bool = False) -> Job | None:
        """READING: an id means its job; the twin beside an active one is addressed as such."""
        job = (self.twins if twin else self.jobs).get(id)
        return job if job and job.status in states else None

    def _owns(self, run: Run) -> bool:
        return run.id in self.jobs and self.jobs[run.id].lease == run

    def _runs_of(self, *workers: str) -> list[Run]:
        runs = [job.lease for job in self.jobs.values() if job.lease and job.lease.worker in workers]
        return sorted(runs, key=lambda run: self.rank.get(run.id, 0))

    def _asks(self, run: Run, outcome: Outcome) -> bool:
        """Whether this end begins the next life of a cron series: a server asks its callers for the time."""
        job = self.jobs[run.id]
        last = outcome is Outcome.STALLED and job.stalls >= job.max_stalls and not job.stop
        return last and job.series is not None and job.series.cron is not None

    def _resolve(self, due: int | None, values: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """What an add leaves open: now, or the first due time of its cron; `lasts` as an instant."""
        assert values.keys() <= OPTIONS | {"data", "task"}, values
        values = {"data": None, "task": ""} | values
        series: Series | None = values.get("series")
        lasts = values.get("lasts")
        if due is None:
            due = series.cron(self.now) if series and series.cron else self.now
        if series and series.cron:
            values["slot"] = due
        return due, values if lasts is None else values | {"expires": self.now + lasts}

    def _log(self, type: str, job: Job | None = None, **details: Any) -> Event:
        about = (job.id, job.life, job.runs, job.task, job.status, job.due) if job else ("", 0, 0, "", "", 0)
        self.events.append(Event(len(self.events) + 1, self.now, type, *about, details))
        return self.events[-1]


def verdict(job: Job, outcome: Outcome) -> Status | None:
    """How a run's end ends its life; None: the life goes on."""
    if outcome is Outcome.SUCCEEDED:
        return Status.SUCCEEDED
    if job.stop or outcome is Outcome.CANCELLED:
        return Status.CANCELLED
    spent = outcome is Outcome.FAILED and job.failures > job.granted
    dead_too_often = outcome is Outcome.STALLED and job.stalls > job.max_stalls
    return Status.FAILED if spent or dead_too_often or outcome is Outcome.FAILED_FOR_GOOD else None


def fresh(job: Job, due: int, **changes: Any) -> Job:
    """The next life of an ended one: same data and options, counts zero."""
    zero: dict[str, Any] = {"runs": 0, "failures": 0, "stalls": 0, "began": None, "finished": None}
    zero |= {"stop": False, "reason": ""}
    return replace(job, due=due, slot=due, previous=bare(job), **(zero | changes))


def bare(job: Job | None) -> Job | None:
    """A finished life as the next one remembers it: without those before it."""
    return job and replace(job, previous=None)
