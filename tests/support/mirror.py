"""A model that does all it does on a real queue too, and compares the two after every call."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import wraps
from itertools import count
from typing import Any, TypeVar

from redis.exceptions import ResponseError

from skep import lifecycle
from skep.core import outcome as outcomes
from skep.core.call import Call
from skep.core.events import RawEvent
from skep.core.job import JobRecord
from skep.core.record import pack
from tests.model import model as reference
from tests.model.model import Job, Model, Outcome, Run, Series, SkepError, Status, Update
from tests.support.engine import LEASE, Engine, Mutation, Photo, Refused, claim_of

ERROR = b'{"type":"Oops","message":"it broke"}'
SERIES = ("again", "every", "cron", "slot")
OF_A_RUN = {"started", "succeeded", "failed", "cancelled", "retrying", "stalled", "returned"}
STEERING: dict[str, Callable[..., Call[list[str]]]] = {
    "cancel": lifecycle.cancel,
    "hold": lifecycle.hold,
    "release": lifecycle.release,
    "promote": lifecycle.promote,
    "retry": lifecycle.revive,
    "remove": lifecycle.remove,
    "update": lifecycle.update,
}
F = TypeVar("F", bound=Callable[..., Any])


class Real:
    """The queue on the server, and what clients and workers know. Never copied: servers forget, clients do not."""

    def __init__(self, path: str, queue: str, mutate: Mutation | None) -> None:
        self.engine = Engine(path, queue, mutate=mutate)
        self.sent: dict[tuple[str, int], tuple[Call[Any], dict[str, Any]]] = {}
        self.leases: dict[Run, lifecycle.Run] = {}
        self.begun: dict[Run, Job] = {}
        self.busy = False
        self.apart = False  # they differ: whatever is compared from now on says nothing

    def __copy__(self) -> Real:
        return self


def outer(method: F) -> F:
    """What a client or worker calls; a model's own calls of it are the model's alone."""
    plain = getattr(Model, method.__name__)

    @wraps(method)
    def called(self: Mirror, *args: Any, **options: Any) -> Any:
        if self.real.busy:
            return plain(self, *args, **options)
        self.real.busy, self.real.engine.now = True, self.now
        try:
            return method(self, *args, **options)
        except AssertionError:
            self.real.apart = True
            raise
        finally:
            self.real.busy = False

    return called  # type: ignore[return-value]


class Mirror(Model):
    """`path` is the server's socket, `mutate` breaks a script on purpose."""

    path = ""
    mutate: Mutation | None = None
    queues = count(1)

    def __init__(self, now: int = 0, failure_handlers: Collection[str] = ()) -> None:
        super().__init__(now, failure_handlers)
        self.real = Real(self.path, f"q{next(self.queues)}", type(self).mutate)
        engine = self.real.engine
        engine.now = now
        engine.command("HSET", engine.keys.all[0], "on_failure", pack(dict.fromkeys(failure_handlers, True)))
        self.photo = engine.photo()

    # clients

    @outer
    def call(self, lane: str, number: int, operation: str, *args: Any, **options: Any) -> Any:
        if (lane, number) not in self.real.sent:
            options = self._explicit(operation, options)
            self.real.sent[lane, number] = (self._call(operation, *args, **options), options)
        call, options = self.real.sent[lane, number]
        mine = self._attempt(lane, number, call)
        if operation == "add" and args[0].startswith("failure-") and not isinstance(mine, SkepError):
            mine = SkepError("ReservedId", args[0])  # a client says so before it sends anything
        theirs: Any = ""
        try:
            theirs = super().call(lane, number, operation, *args, **options)
        except SkepError as refusal:
            theirs = refusal
        self._agree(f"{operation} {args} {options}", self._said(operation, mine), theirs)
        if isinstance(theirs, SkepError):
            raise theirs
        return theirs

    def _attempt(self, lane: str, number: int, call: Call[Any]) -> Any:
        engine = self.real.engine
        try:
            return engine.send(call, lane, number)
        except Refused as refusal:
            return SkepError(refusal.word, refusal.about.split(" ")[-1])
        except ResponseError as refusal:
            if not str(refusal).startswith("STALE"):
                raise
            return SkepError("Stale", lane)

    @staticmethod
    def _said(operation: str, answer: Any) -> Any:
        """The real answer as the model gives it."""
        if isinstance(answer, SkepError):
            return answer
        if operation == "add":
            return (answer[0].outcome, answer[0].life)
        if operation == "empty":
            return len(answer)
        return None if operation in ("drop", "pause", "resume") else bool(answer)

    def _explicit(self, operation: str, options: dict[str, Any]) -> dict[str, Any]:
        """A client works out when a cron line is due first: a resend says the same."""
        series = options.get("series")
        if operation == "add" and series and series.cron and "due" not in options:
            return options | {"due": series.cron(self.now)}
        return options

    def _call(self, operation: str, *args: Any, **options: Any) -> Call[Any]:
        keys = self.real.engine.keys
        if operation == "add" and args[0].startswith("failure-"):
            return lifecycle.hold(keys, [])
        if operation == "add":
            return self._add(args[0], **options)
        if operation in STEERING:
            return self._steer(operation, args[0], **options)
        if operation == "empty":
            idle = [(id, None) for id, job in self.jobs.items() if job.status in (*reference.IDLE, Status.HELD)]
            return lifecycle.remove(keys, [*idle, *((id, twin.life) for id, twin in self.twins.items())])
        if operation == "drop":
            return lifecycle.drop(keys)
        return lifecycle.pause(keys, wanted=operation == "pause")

    def _add(
        self,
        id: str,
        *,
        on_conflict: Any = None,
        due: int | None = None,
        generated: bool = False,
        **values: Any,
    ) -> Call[Any]:
        keys, data = self.real.engine.keys, text(values.get("data"))
        terms: dict[str, Any] = {
            "id": id,
            "data": data,
            "task": values.get("task", ""),
            "generated": generated,
        }
        terms["options"] = options_of(values, due)
        if due is not None:
            terms |= {"delay": due - self.now} if due % 2 else {"due": due}
        if isinstance(on_conflict, Update):
            named = on_conflict.options
            if isinstance(named, frozenset):
                named = frozenset(each for name in named for each in (SERIES if name == "series" else (name,)))
            counts = on_conflict.data if on_conflict.counts is None else on_conflict.counts
            flags = lifecycle.Flags(data=on_conflict.data, run_at=on_conflict.run_at, options=named, counts=counts)
            terms["flags"] = flags
        elif on_conflict:
            terms["conflict"] = on_conflict
        draft = lifecycle.Draft(**terms)
        return lifecycle.add(keys, draft, [(id, data)]) if draft.is_plain else lifecycle.upsert(keys, [draft])

    def _steer(self, operation: str, id: str, *, twin: bool = False, **values: Any) -> Call[Any]:
        keys, job = self.real.engine.keys, (self.twins if twin else self.jobs).get(id)
        if twin and job is None:
            return lifecycle.hold(keys, [])
        # A handle names the life; but for a cancel, which by id takes the twin along, both mean the same.
        by_handle = twin or (operation != "cancel" and len(self.events) % 2)
        life = job.life if job and by_handle else None
        if operation == "update":
            given = {"due": values["due"]} if "due" in values else {}
            given |= {"data": text(values["data"])} if "data" in values else {}
            given["options"] = options_of({name: values[name] for name in values.keys() - {"due", "data"}}, None)
            return lifecycle.update(keys, [(id, life)], **given)
        return STEERING[operation](keys, [(id, life)], **values)

    # workers

    @outer
    def join(self, worker: str) -> None:
        self._keep_up()
        engine = self.real.engine
        engine.send(lifecycle.join(engine.keys, worker, lease=LEASE, info={"host": "h"}))
        super().join(worker)
        self._agree(f"join {worker}")

    @outer
    def leave(self, worker: str, *, died: bool = False) -> None:
        self._keep_up()
        engine = self.real.engine
        engine.send(lifecycle.leave(engine.keys, worker, died=died))
        self._as_asked()
        self._agree(f"leave {worker} {died}", run=lambda: super(Mirror, self).leave(worker, died=died))

    def _as_asked(self) -> None:
        """Slices of upkeep, each told what the one before asked for."""
        engine, nexts = self.real.engine, dict[str, int]()
        for _ in range(20):
            done = engine.send(lifecycle.upkeep(engine.keys, nexts=nexts))
            for each in done.wanted:
                assert each.cron == "hourly"
                nexts[each.key] = hourly(min(each.slot, each.began))
            if not done.more:
                return
        raise AssertionError("upkeep never ends")

    @outer
    def claim(self, worker: str, number: int, n: int, knows: Collection[str]) -> list[Run] | None:
        engine, tasks = self.real.engine, sorted(knows)
        early = 0 < self.now - self.clock_seen < 100  # then a claim does not look at what time brings
        if (
            early
            or number % 2
            or any(job.series and job.series.cron for job in [*self.jobs.values(), *self.twins.values()])
        ):
            self._keep_up()
        call = claim_of(engine.keys, worker, number, n, tasks)
        claimed = engine.twice(call) if number % 3 == 0 else engine.send(call)
        runs: list[Run] | None = None

        def claim() -> None:
            nonlocal runs
            runs = super(Mirror, self).claim(worker, number, n, tasks)

        self._agree(f"claim {worker} {number} {n} {tasks}", run=claim)
        assert (claimed is None) == (runs is None), (claimed, runs)
        if claimed is None or runs is None:
            return None
        handed = {run.id: run for run in claimed.runs}
        assert handed.keys() == {run.id for run in runs}, (handed, runs)
        for run in runs:
            self.real.leases[run] = handed[run.id]
            self.real.begun[run] = self.jobs[run.id]
        return runs

    @outer
    def renew(self, worker: str, named: Collection[Run], answered: int) -> tuple[list[Run], list[Run]] | None:
        self._keep_up()
        engine = self.real.engine
        leases = [(run.id, self.real.leases[run].lease) for run in named]
        told = engine.send(lifecycle.renew(engine.keys, worker, lease=LEASE, answered=answered, runs=leases))
        answer: tuple[list[Run], list[Run]] | None = None

        def renew() -> None:
            nonlocal answer
            answer = super(Mirror, self).renew(worker, named, answered)

        self._agree(f"renew {worker} {named} {answered}", run=renew)
        assert (told is None) == (answer is None), (told, answer)
        if told is not None and answer is not None:
            assert sorted(told.lost) == sorted(run.id for run in answer[0]), (told, answer)
            assert sorted(told.stop) == sorted(run.id for run in answer[1]), (told, answer)
        return answer

    @outer
    def leave_run(self, run: Run, outcome: Outcome, *, after: int = 0) -> bool:
        self._keep_up()
        engine = self.real.engine
        said = self._outcome(run, outcome, after)
        accepted = engine.twice(lifecycle.leave_run(engine.keys, run.worker, [(self.real.leases[run], said)]))
        answer = super().leave_run(run, outcome, after=after)
        self._agree(f"leave_run {run} {outcome} {after}")
        assert accepted == [answer], (run, outcome, accepted, answer)
        return answer

    def _outcome(self, run: Run, outcome: Outcome, after: int) -> outcomes.Outcome:
        """What the worker says, by the terms that it was told at the claim."""
        job = self.real.begun[run]
        cron = job.series.cron if job.series else None
        due = None if cron is None or job.began is None else cron(min(job.slot, job.began))
        if outcome is Outcome.FAILED and job.failures < job.granted:
            return outcomes.Retried(after, ERROR)
        match outcome:
            case Outcome.SUCCEEDED:
                return outcomes.Succeeded(b"1", due)
            case Outcome.FAILED | Outcome.FAILED_FOR_GOOD:
                return outcomes.Failed(ERROR, next_due=due)
            case Outcome.POSTPONED:
                return outcomes.Postponed(after)
            case Outcome.CANCELLED:
                return outcomes.Cancelled("", due)
            case Outcome.STALLED:
                return outcomes.Stalled(ERROR, due)
            case Outcome.RETURNED:
                return outcomes.Returned()

    # time

    @outer
    def tick(self) -> None:
        self._keep_up()

    def _keep_up(self) -> None:
        engine, nexts = self.real.engine, dict[str, int]()
        for job in [*self.jobs.values(), *self.twins.values()]:
            if job.series and job.series.cron:
                began = self.now if job.began is None else job.began
                nexts[f"{job.id} {job.life}"] = job.series.cron(min(job.slot, began))
        engine.upkeep(nexts)
        self._agree("upkeep", run=super().tick)

    # comparing

    def _agree(self, what: str, mine: Any = None, theirs: Any = None, *, run: Callable[[], Any] | None = None) -> None:
        """`run`: what the model has still to do; in which order the server came by dead runs it is told before."""
        engine = self.real.engine
        news, self.photo = engine.news(), engine.photo()
        if run:
            self.rank = {}
            for place, event in enumerate(news):
                self.rank = {event.job: place, **self.rank}
            run()
            self.rank = {}
        real = [told(event) for event in news]
        expected = [foretold(event) for event in self.events if event.seq > engine.read_to - len(news)]
        assert real == expected, f"{what}: events\n{_lines(real)}\nbut the model\n{_lines(expected)}"
        assert engine.read_to == len(self.events), what
        if isinstance(theirs, SkepError) or isinstance(mine, SkepError):
            assert getattr(mine, "args", "") == getattr(theirs, "args", None), (what, mine, theirs)
        else:
            theirs = (theirs.outcome, theirs.life) if isinstance(theirs, reference.Added) else theirs
            assert mine == theirs, f"{what}: {mine!r}, but the model {theirs!r}"
        self._same(what, self.photo)

    def _same(self, what: str, photo: Photo) -> None:
        assert photo.jobs.keys() == self.jobs.keys(), f"{what}: {photo.jobs.keys()}, but the model {self.jobs.keys()}"
        for id, job in self.jobs.items():
            mine, theirs = stands(photo.jobs[id]), supposed(job, self.twins.get(id))
            different = {name: (mine[name], theirs[name]) for name in theirs if mine[name] != theirs[name]}
            assert not different, f"{what}: job {id} (real, model): {different}"
        waiting = sorted((job for job in self.jobs.values() if job.status is Status.WAITING), key=lambda job: job.place)
        order = [[job.id for job in waiting if job.priority == priority] for priority in range(10, 70, 10)]
        assert photo.waiting == order, f"{what}: waiting {photo.waiting}, but the model {order}"

    def restored(self) -> None:
        """The model has forgotten something: so does the server."""
        self.real.engine.restore(self.photo)
        self.real.engine.read_to = len(self.events)


def hourly(now: int) -> int:
    """The only cron line there is."""
    return (now // 3_600_000 + 1) * 3_600_000


def text(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value).encode()


def options_of(values: dict[str, Any], due: int | None) -> dict[str, Any]:
    """The options of a record, of a model's values."""
    options: dict[str, Any] = {
        name: values[name] for name in ("priority", "retries", "max_stalls", "keep", "lasts") if name in values
    }
    if "meta" in values:
        options["meta"] = json.dumps(values["meta"])
    if "series" in values:
        options |= _terms(values["series"], due)
    return options


def _terms(series: Series | None, due: int | None) -> dict[str, Any]:
    terms: dict[str, Any] = dict.fromkeys(SERIES, False)
    if series and series.cron:
        terms |= {"again": series.repeat, "cron": "hourly", "slot": due}
    elif series:
        terms |= {"again": series.repeat, "every": series.every}
    return terms


def told(event: RawEvent) -> tuple[Any, ...]:
    """What is compared of an event of the server."""
    details = event.details
    due = details.get("due", event.head.due) if event.job else 0
    common = (event.seq, event.at, event.type, event.job, event.life)
    status, task = (event.status, event.head.task) if event.job else ("", "")
    more = {name: details[name] for name in ("worker", "live", "into", "stop") if name in details}
    if event.type == "merged":
        task = ""
    return (*common, event.run if event.type in OF_A_RUN else 0, task, status, due, more)


def foretold(event: reference.Event) -> tuple[Any, ...]:
    """The same of an event of the model."""
    more = {name: event.details[name] for name in ("worker", "live", "into", "stop") if name in event.details}
    if event.type == "started":
        more.pop("worker")
    task = "" if event.type == "merged" else event.task
    run = event.run if event.type in OF_A_RUN else 0
    return (
        event.seq,
        event.at,
        event.type,
        event.id,
        event.life,
        run,
        task,
        str(event.status),
        event.due,
        more,
    )


def _lines(events: list[Any]) -> str:
    return "\n".join(f"  {event}" for event in events)


def stands(job: JobRecord) -> dict[str, Any]:
    """What is compared of a job in the server."""
    found = {
        "status": str(job.status),
        "failures": job.known.failures,
        "stalls": job.known.stalls,
        "runs": job.known.runs + (job.status == "active"),
        "stop": job.stop and str(job.status) == "active",
        "finished": job.finished,
        "previous": job.known.previous and (job.known.previous.life, job.known.previous.status),
        "lease": job.lease and (job.lease.worker, job.lease.claim) if job.status == "active" else None,
        "reason": job.reason if job.status == "held" or job.reason == "expired" else "",
        "twin": job.twin and described(job.twin),
    }
    ended = {"series": None, "slot": None} if found["stop"] else {}  # the record tells it when the run ends
    return found | described(job.head) | ended


def described(head: Any) -> dict[str, Any]:
    """The part of it that stands in a record."""
    options = head.options
    again = options.get("again")
    series = (
        None if again is None or again is False else (again, "hourly" if options.get("cron") else options.get("every"))
    )
    return {
        "life": head.life,
        "due": head.due,
        "task": head.task,
        "data": head.data,
        "priority": options.get("priority", 40),
        "expires": options.get("expires"),
        "lasts": options.get("lasts"),
        "retries": options.get("retries", 10),
        "max_stalls": options.get("max_stalls", 3),
        "keep": options.get("keep"),
        "meta": options.get("meta"),
        "series": series,
        "slot": options.get("slot") if series and options.get("cron") else None,
    }


def supposed(job: Job, twin: Job | None) -> dict[str, Any]:
    """The same of a job in the model."""
    found = {
        "status": str(job.status),
        "failures": job.failures,
        "stalls": job.stalls,
        "runs": job.runs,
        "stop": job.stop and str(job.status) == "active",
        "finished": job.finished,
        "previous": job.previous and (job.previous.life, str(job.previous.status)),
        "lease": job.lease and (job.lease.worker, job.lease.claim),
        "reason": job.reason if job.status is Status.HELD or job.reason == "expired" else "",
        "twin": twin and _supposed(twin),
    }
    return found | _supposed(job)


def _supposed(job: Job) -> dict[str, Any]:
    series = None
    if job.series:
        series = (job.series.repeat, "hourly" if job.series.cron else job.series.every)
    return {
        "life": job.life,
        "due": job.due,
        "task": job.task,
        "data": ANY if job.task.startswith("on_failure:") and job.id.startswith("failure-") else text(job.data),
        "priority": job.priority,
        "expires": job.expires,
        "lasts": job.lasts,
        "retries": job.retries,
        "max_stalls": job.max_stalls,
        "keep": job.keep,
        "meta": None if job.meta is None else json.dumps(job.meta),
        "series": series,
        "slot": job.slot if job.series and job.series.cron else None,
    }


class _Any:
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


ANY = _Any()
