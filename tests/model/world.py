"""The world around a queue: random clients, workers, clocks and restarts, and what must always hold.

Longer than a file should be, because hypothesis wants all rules of a machine in one class.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.model import model as reference
from tests.model.ledger import BIRTHS, ENDS, HANDLED, Ledger

HOUR, DAY = 3_600_000, 86_400_000
IDS = st.sampled_from("abcde")
TASKS = ["", "t1", "t2"]
EVERY_TASK = {*TASKS, *(f"on_failure:{task}" for task in TASKS)}
TROUBLES: dict[str, list[Any]] = {
    "lose_a_worker": ["silently", "silently", "frozen", "frozen", "seen", "stopped"],
    "restart": [1, 2, 3, 4, 5],
    "clock_steps": [-100_000, -5_000, -1, 5_000, 14_000, 60_000],
    "nobody_is_heard": [10_000, 16_000, 31_000, 100_000, 2 * HOUR, 8 * DAY],
    "whole_queue": ["pause", "resume", "resume", "empty", "drop"],
}
KNOWS = [{"t1", "on_failure:t1"}, {"", "t1"}, EVERY_TASK]


def hourly(now: int) -> int:
    return (now // HOUR + 1) * HOUR


ADD: Any = {
    "client": st.sampled_from(["c0", "c1", "c2"]),
    "resent": st.booleans(),
    "on_conflict": st.one_of(
        st.just("update"),
        st.sampled_from(["ignore", "raise"]),
        st.tuples(
            st.booleans(),
            st.sampled_from([True, False, "if_later", "if_earlier"]),
            st.sampled_from([True, False, frozenset({"priority"}), frozenset({"series", "retries"})]),
            st.sampled_from([None, True, False]),
        ),
    ),
    "delay": st.sampled_from([None, None, None, 0, 1000, 40_000]),
    "values": st.fixed_dictionaries(
        {},
        optional={
            "data": st.integers(0, 9),
            "task": st.sampled_from(TASKS),
            "priority": st.sampled_from([20, 40]),
            "retries": st.sampled_from([0, 1, 2]),
            "max_stalls": st.sampled_from([0, 1, 3]),
            "keep": st.sampled_from([0, 5_000, True]),
            "lasts": st.sampled_from([500, 20_000, 100_000]),
            "series": st.sampled_from(["", "1", "2", "ever", "cron"]),
        },
    ),
}


def add_rule(**more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A rule with the options of an add, and more."""
    return rule(**more, **ADD)


@dataclass
class Local:
    """A run as it goes on in a worker's process."""

    run: Any
    uid: int
    excused: bool = False  # frozen, or the server forgot: another run of the id may begin
    said: tuple[str, int] | None = None  # the outcome it was settled with, until that is answered


@dataclass
class Worker:
    name: str
    knows: set[str]
    renewed: int
    claim: int = 0
    answered: int = 0
    lost_claim: int = 0
    frozen: bool = False
    runs: list[Local] = field(default_factory=list[Local])


class World(RuleBasedStateMachine):
    """A model with random calls, deaths and steps of the clock, and a check of every promise after each."""

    module: Any = reference
    steps = examples = 0

    def __init__(self) -> None:
        super().__init__()
        World.examples += 1
        self.m = self.module.Model(now=10 * DAY, failure_handlers=HANDLED)
        self.ledger = Ledger()
        self.history: deque[tuple[dict[str, Any], Ledger]] = deque(maxlen=6)
        self.time = 0  # of a wall clock that nobody steps
        self.latest = self.m.now
        self.numbers: Counter[str] = Counter()
        self.sent: dict[str, list[tuple[int, int, tuple[Any, ...], dict[str, Any]]]] = {
            "c0": [],
            "c1": [],
            "c2": [],
        }
        self.refused: dict[tuple[str, int], str] = {}
        self.workers: list[Worker | None] = [None, None, None]
        self.holder: dict[Any, int] = {}  # run -> the local run that last began by this name
        self.born = self.uids = 0
        self.start(0)
        self.start(2)

    # snapshots

    def server(self) -> dict[str, Any]:
        return {name: copy.copy(value) for name, value in vars(self.m).items()}

    def save(self) -> None:
        World.steps += 1
        self.history.append((self.server(), self.ledger.copy()))

    def read_events(self) -> None:
        for event in self.m.events[self.ledger.seq :]:
            self.ledger.feed(event)

    def restart(self, k: int) -> None:
        """The server dies with its last k operations; the clock goes on."""
        if not self.history:
            return
        for _ in range(min(k, len(self.history)) - 1):
            self.history.pop()
        state, self.ledger = self.history.pop()
        now = self.m.now
        vars(self.m).update(state)
        self.m.now = now
        self.refused.clear()  # the lanes roll back with the data
        self.excuse()

    def excuse(self) -> None:
        for worker in self.alive():
            for local in worker.runs:
                local.excused = True

    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers if worker]

    # clients

    def call(self, client: str, operation: str, *args: Any, resent: bool = False, **options: Any) -> Any:
        self.save()
        self.numbers[client] += 1
        number = self.numbers[client]
        if operation == "add":
            self.sent[client].append((number, self.m.now, args, options))
        answer, refusal = self.answer(client, number, operation, *args, **options)
        self.read_events()
        if operation == "add":
            self.acknowledge(answer, options)
            if refusal:
                self.refused[client, number] = refusal
        elif operation == "update" and answer and options["twin"] and "due" in options:
            self.ask(args[0], self.m.twins[args[0]].life, True, options["due"], False)
        if resent:
            before = self.server()
            again = self.answer(client, number, operation, *args, **options)
            assert again == (answer, refusal), "a resend is answered otherwise"
            assert self.server() == before, "a resend changed something"
        return answer

    def answer(self, client: str, number: int, operation: str, *args: Any, **options: Any) -> tuple[Any, str]:
        try:
            return self.m.call(client, number, operation, *args, **options), ""
        except self.module.SkepError as refusal:
            return None, str(refusal)

    def acknowledge(self, answer: Any, options: dict[str, Any]) -> None:
        if answer and answer.outcome != "ignored":
            assert (answer.id, answer.life) in self.ledger.lives
            self.ledger.acked |= {(answer.id, answer.life)}
            series = options.get("series")
            due = options.get("due", hourly(self.m.now) if series and series.cron else self.m.now)
            if answer.outcome != "added":
                flags = options["on_conflict"]
                counts = flags.data if flags.counts is None else flags.counts
                self.ask(answer.id, answer.life, flags.run_at, due, counts)

    def ask(self, id: str, life: int, run_at: bool | str, due: int, counts: bool) -> None:
        if (id, life) in self.ledger.beside:
            self.ledger.beside[id, life] = [*self.ledger.beside[id, life], (run_at, due, counts)]

    @rule(id=IDS, task=st.sampled_from(TASKS), delay=st.sampled_from([None, None, None, 1000]))
    def add_plainly(self, id: str, task: str, delay: int | None) -> None:
        due = {} if delay is None else {"due": self.m.now + delay}
        conflict = self.module.Update()
        self.call("c1", "add", id, task=task, on_conflict=conflict, retries=1, max_stalls=1, **due)

    @precondition(lambda self: self.active())
    @add_rule(pick=st.integers(0, 5), run_at=st.sampled_from([True, False, "if_later", "if_earlier"]))
    def add_beside(self, pick: int, run_at: bool | str, **asked: Any) -> None:
        if asked["on_conflict"] == "update":
            asked["on_conflict"] = (True, run_at, True, None)
        self.add_richly(self.active()[pick % len(self.active())], **asked)

    @add_rule(id=st.one_of(IDS, IDS, IDS, st.none()))
    def add(self, id: str | None, **asked: Any) -> None:
        self.add_richly(id, **asked)

    def active(self) -> list[str]:
        return [id for id, job in self.m.jobs.items() if job.status == "active"]

    def add_richly(
        self,
        id: str | None,
        client: str,
        resent: bool,
        on_conflict: Any,
        delay: int | None,
        values: dict[str, Any],
    ) -> None:
        if "series" in values:
            make = self.module.Series
            kinds = {
                "1": make(1, 1000),
                "2": make(2, 0),
                "ever": make(True, 3000),
                "cron": make(True, 0, hourly),
            }
            values["series"] = kinds.get(values["series"])
        if on_conflict == "update":
            on_conflict = self.module.Update()
        elif isinstance(on_conflict, tuple):
            on_conflict = self.module.Update(*on_conflict)
        if id is None:
            self.born += 1
            id = f"g{self.born}"
            values["generated"] = True
        if delay is not None:
            values["due"] = self.m.now + delay
        self.call(client, "add", id, on_conflict=on_conflict, resent=resent, **values)

    @rule(client=st.sampled_from(["c0", "c1", "c2"]), back=st.integers(1, 4))
    def resend_an_earlier_add(self, client: str, back: int) -> None:
        if len(self.sent[client]) < back:
            return
        number, at, args, options = self.sent[client][-back]
        last = self.m.calls.get(client)
        known = last is not None and number <= last.number
        if self.m.now - at > HOUR // 6 or (not known and number != self.numbers[client]):
            return  # nobody resends what is so old, or what a later call overtook
        self.save()
        before = self.server()
        answer, refusal = self.answer(client, number, "add", *args, **options)
        self.read_events()
        first = self.refused.get((client, number))
        assert first in (None, refusal) or number < self.numbers[client], "refused, told so, and then applied"
        assert not known or self.server() == before, "a resend changed something"
        self.acknowledge(None if known else answer, options)

    @precondition(lambda self: self.refused)
    @rule()
    def resend_a_refusal_whose_reason_is_gone(self) -> None:
        client, number = list(self.refused)[-1]
        if number == self.numbers[client]:
            other = "c1" if client == "c0" else "c0"
            self.call(other, "remove", self.sent[client][-1][2][0])
            self.resend_an_earlier_add(client, 1)

    @precondition(lambda self: self.active())
    @rule(pick=st.integers(0, 5), twin=st.booleans(), operation=st.sampled_from(["cancel", "update", "remove"]))
    def steer_the_active(self, pick: int, twin: bool, operation: str) -> None:
        id = self.active()[pick % len(self.active())]
        self.steer_it("c2", operation, id, twin, False, {"priority": 20})

    @rule(
        client=st.sampled_from(["c0", "c1", "c2"]),
        operation=st.sampled_from(["cancel", "cancel", "hold", "release", "promote", "retry", "remove", "update"]),
        id=IDS,
        twin=st.booleans(),
        resent=st.booleans(),
        values=st.sampled_from([{}, {"due": 0}, {"due": 30_000}, {"data": 1}, {"meta": 1}, {"priority": 20}]),
    )
    def steer(self, client: str, operation: str, id: str, twin: bool, resent: bool, values: dict[str, int]) -> None:
        self.steer_it(client, operation, id, twin, resent, values)

    def steer_it(self, client: str, operation: str, id: str, twin: bool, resent: bool, values: dict[str, int]) -> None:
        job, beside = self.m.jobs.get(id), self.m.twins.get(id)
        options: dict[str, Any] = {"twin": twin} if operation in ("cancel", "remove", "update") else {}
        if operation == "update":
            due = {"due": self.m.now + values["due"]} if "due" in values else {}
            options |= values | due
        answer = self.call(client, operation, id, resent=resent, **options)
        target = beside if options.get("twin") else job
        if answer is not None:
            self.check_the_table(operation, target, answer, job, beside)

    def check_the_table(self, operation: str, target: Any, answer: Any, job: Any, beside: Any) -> None:
        """The answer that each operation gives in each state, and what it did."""
        status = target.status if target else None
        live = status is not None and status not in ENDS
        idle = status in ("waiting", "scheduled", "retrying")
        expected = {
            "cancel": live,
            "hold": idle,
            "release": status == "held",
            "promote": status in ("scheduled", "retrying"),
            "retry": status in ENDS,
            "remove": status is not None and status != "active",
        }
        assert answer == expected.get(operation, answer), (operation, status, answer)
        if operation == "cancel" and answer and status == "active":
            assert self.m.jobs[job.id].stop and job.id not in self.m.twins
        if operation == "promote" and answer:
            assert self.m.jobs[job.id].status == "waiting"
        if operation == "hold" and answer:
            held = self.m.jobs[job.id]
            assert (held.due, held.failures, held.stalls) == (job.due, job.failures, job.stalls)
        if operation == "retry" and answer:
            assert self.m.jobs[job.id].failures == 0 and self.m.jobs[job.id].previous
        if operation not in ("cancel", "update") and target is not beside and beside:
            assert self.m.twins.get(beside.id) == beside

    def whole_queue(self, operation: str) -> None:
        self.call("c0", operation)
        if operation == "drop":
            self.excuse()

    # workers

    def start(self, slot: int) -> None:
        worker = self.workers[slot]
        if worker is None:
            self.born += 1
            worker = self.workers[slot] = Worker(f"w{self.born}", KNOWS[slot], self.time)
        self.join(worker)

    def join(self, worker: Worker) -> None:
        self.save()
        self.m.join(worker.name)
        worker.renewed = self.time
        self.read_events()

    def fenced(self, worker: Worker) -> None:
        worker.runs = []
        self.join(worker)

    def awake(self) -> list[Worker]:
        return [worker for worker in self.alive() if not worker.frozen]

    @precondition(lambda self: self.awake())
    @rule(pick=st.integers(0, 5), n=st.integers(1, 3), lost=st.integers(0, 4), resend=st.booleans())
    def claim(self, pick: int, n: int, lost: int, resend: bool) -> None:
        self.claim_by(self.awake()[pick % len(self.awake())], n, lost, resend)

    def claim_by(self, worker: Worker, n: int, lost: int, resend: bool) -> None:
        self.save()
        if worker.lost_claim and resend:
            number = worker.lost_claim
        else:
            worker.claim = number = worker.claim + 1
        worker.lost_claim = 0
        before = len(self.m.events)
        paused = self.m.paused
        known = self.m.workers.get(worker.name)
        resent = known is not None and number <= known.claim
        runs = self.m.claim(worker.name, number, n, worker.knows)
        self.check_starts(before, paused, 0 if resent else n, worker)
        self.read_events()
        if lost == 0:
            worker.lost_claim = number
        elif runs is None:
            self.fenced(worker)
        else:
            worker.answered = number
            for run in runs:
                self.begin(worker, run)

    def check_starts(self, before: int, paused: bool, n: int, worker: Worker) -> None:
        started = [event for event in self.m.events[before:] if event.type == "started"]
        assert len(started) <= n
        assert not (paused and started), "paused"
        for event in started:
            job = self.m.jobs[event.id]
            assert event.due <= self.latest, "started before its time"
            assert event.task in worker.knows
            waiting = [job for job in self.m.jobs.values() if job.status == "waiting" and job.task in worker.knows]
            assert all(job.priority >= self.m.jobs[event.id].priority for job in waiting), "priority"
            late = job.runs == 1 and job.expires is not None and job.expires <= self.m.now
            assert not late, "started after it expired"

    def begin(self, worker: Worker, run: Any) -> None:
        for other in self.alive():
            for local in other.runs:
                if local.run.id == run.id and not local.excused and local.said is None and local.run != run:
                    raise AssertionError(f"two runs of {run.id} at once: {local.run}, {run}")
        assert self.m.jobs[run.id].lease == run
        self.uids += 1
        worker.runs = [local for local in worker.runs if local.run != run or local.said is not None]
        worker.runs.append(Local(run, self.uids))
        self.holder[run] = self.uids

    @precondition(lambda self: self.awake() and self.m.counts()["waiting"])
    @rule(pick=st.integers(0, 5))
    def claim_three(self, pick: int) -> None:
        self.claim_by(self.awake()[pick % len(self.awake())], 3, lost=1, resend=False)

    @precondition(lambda self: any(worker.runs for worker in self.awake()))
    @rule(
        pick=st.integers(0, 11),
        outcome=st.sampled_from(
            ["SUCCEEDED", "FAILED", "FAILED", "FAILED_FOR_GOOD", "POSTPONED", "CANCELLED", "RETURNED"]
        ),
        after=st.sampled_from([0, 0, 1000, 20_000]),
        lost=st.integers(0, 3),
    )
    def settle(self, pick: int, outcome: str, after: int, lost: int) -> None:
        running = [(worker, local) for worker in self.awake() for local in worker.runs]
        worker, local = running[pick % len(running)]
        local.said = local.said or (outcome, after)
        self.save()
        accepted = self.m.leave_run(local.run, self.module.Outcome[local.said[0]], after=local.said[1])
        if accepted:
            assert self.holder[local.run] == local.uid, "accepted from a run that is not the last"
            self.check_the_twin(local.run.id)
            self.check_the_counts(local.run, local.said)
        self.read_events()
        before = self.server()
        assert not self.m.leave_run(local.run, self.module.Outcome.SUCCEEDED), "a second end was accepted"
        assert self.server() == before
        if lost:
            worker.runs.remove(local)

    def check_the_counts(self, run: Any, said: tuple[str, int]) -> None:
        """What the end of a run without T uses up, and whether the life goes on."""
        state, _ = self.history[-1]
        job, after = state["jobs"][run.id], self.m.jobs.get(run.id)
        if run.id in state["twins"] or after is None or after.life != job.life:
            return
        used = (after.failures - job.failures, after.stalls - job.stalls)
        assert used == (said[0] in ("FAILED", "FAILED_FOR_GOOD"), 0), "counts"
        goes_on = said[0] in ("POSTPONED", "RETURNED") or (said[0] == "FAILED" and job.failures < job.granted)
        assert (after.status in ENDS) == (job.stop or not goes_on)
        assert after.status in ENDS or after.due == self.m.now + (0 if said[0] == "RETURNED" else said[1])

    def check_the_twin(self, id: str) -> None:
        """What became of T at the end of a run, told from the state before."""
        state, ledger = self.history[-1]
        job, twin, after = state["jobs"][id], state["twins"].get(id), self.m.jobs.get(id)
        if twin is None:
            return
        assert id not in self.m.twins and after is not None
        goes_on = after.life == job.life
        if not goes_on and not (job.series and job.series.repeat):
            assert after.life == twin.life and after.data == twin.data and after.due == twin.due
        else:
            assert all(getattr(after, name) == value for name, value in twin.change.values.items())
            zeroed = any(counts for *_, counts in ledger.beside[id, twin.life])
            assert after.failures == after.stalls == 0 if zeroed else after.stalls == job.stalls or not goes_on
            assert twin.change.earliest <= after.due <= twin.change.latest

    @precondition(lambda self: self.awake())
    @rule(pick=st.integers(0, 5))
    def renew(self, pick: int) -> None:
        self.save()
        self.renew_now(self.awake()[pick % len(self.awake())])

    def renew_now(self, worker: Worker) -> None:
        named = [local.run for local in worker.runs]
        answer = self.m.renew(worker.name, named, worker.answered)
        self.read_events()
        if answer is None:
            self.fenced(worker)
            return
        lost, stop = answer
        worker.renewed = self.time
        worker.runs = [local for local in worker.runs if local.run not in lost]
        mine = {job.lease for job in self.m.jobs.values() if job.lease and job.lease.worker == worker.name}
        for local in worker.runs:
            assert local.run in mine, "a lost run was not stopped"
            local.excused = False
        unheard = {run for run in mine if run.claim <= worker.answered} - {local.run for local in worker.runs}
        assert not unheard, "held for a worker that does not have it"
        assert all(self.m.jobs[run.id].stop for run in stop)
        assert all(run in stop for run in mine & set(named) if self.m.jobs[run.id].stop), "a stop request was not told"

    def lose_a_worker(self, slot: int, how: str) -> None:
        worker = self.workers[slot]
        if worker is None:
            return
        if how == "frozen":
            worker.frozen = True
            for local in worker.runs:
                local.excused = True
            return
        self.workers[slot] = None
        if how != "silently":
            self.save()
            self.m.leave(worker.name, died=how == "seen")
            self.read_events()

    @precondition(lambda self: len(self.awake()) < 3)
    @rule()
    def workers_come_back(self) -> None:
        for slot, worker in enumerate(self.workers):
            if worker is None:
                self.start(slot)
            else:
                worker.frozen = False

    @rule(
        trouble=st.sampled_from([(kind, value) for kind, values in TROUBLES.items() for value in values]),
        slot=st.integers(0, 2),
    )
    def trouble(self, trouble: tuple[str, Any], slot: int) -> None:
        kind, value = trouble
        if kind == "lose_a_worker":
            self.lose_a_worker(slot, value)
        else:
            getattr(self, kind)(value)

    # time

    @rule(dt=st.sampled_from([1, 1000, 5_000, 20_000, 40_000, 70_000]))
    def time_passes(self, dt: int) -> None:
        """Healthy workers renew all the while."""
        self.save()
        while dt:
            part = min(dt, reference.LEASE // 4)
            dt -= part
            self.move(part)
            for worker in self.awake():
                self.renew_now(worker)
            self.m.tick()
            self.read_events()
        self.check_upkeep()

    def nobody_is_heard(self, dt: int) -> None:
        self.save()
        self.move(dt)
        for worker in self.awake():
            if self.time - worker.renewed > reference.LEASE * 9 // 10:
                worker.runs = []  # ends its runs before the lease does
        before = len(self.m.events)
        self.m.tick()
        silence = dt > reference.LEASE // 2
        assert not silence or all(event.type != "stalled" for event in self.m.events[before:]), "blamed for a silence"
        self.read_events()
        self.check_upkeep()

    def clock_steps(self, dt: int) -> None:
        self.save()
        self.m.now += dt
        self.latest = max(self.latest, self.m.now)
        self.excuse()
        self.m.tick()
        self.read_events()
        self.check_upkeep()

    def check_upkeep(self) -> None:
        """What a pass leaves: nothing due, expired, out of its lease or kept too long."""
        m = self.m
        for job in [*m.jobs.values(), *m.twins.values()]:
            assert job.status in ENDS or job.runs or job.expires is None or job.expires > m.now, "expired"
            assert job.status not in ("scheduled", "retrying") or job.due > m.now, "due"
            if job.status in ENDS and job.keep is not True:
                keep = reference.RETENTION[job.status] if job.keep is None else job.keep
                assert job.finished + keep > m.now, "kept too long"
        for worker in m.workers.values():
            assert m.now < worker.until <= m.now + reference.LEASE, "lease"

    def move(self, dt: int) -> None:
        self.time += dt
        self.m.now += dt
        self.latest = max(self.latest, self.m.now)

    # what must always hold

    @invariant()
    def states_and_counts_are_what_the_events_say(self) -> None:
        m, ledger = self.m, self.ledger
        assert ledger.seq == len(m.events) and not ledger.owed
        live = {id: job for id, job in m.jobs.items() if job.status not in ENDS}
        assert live.keys() == ledger.heads.keys() and m.twins.keys() == ledger.twins.keys()
        counts = Counter(str(job.status) for job in m.jobs.values() if job.status in ENDS)
        for id, life in [*ledger.heads.items(), *ledger.twins.items()]:
            job = m.twins[id] if life.status == "blocked" else m.jobs[id]
            status = life.status
            if status in ("scheduled", "retrying") and job.status == "waiting":
                assert life.due <= self.latest
                status = "waiting"
            mine = (job.life, job.due, job.runs, job.status)
            assert mine == (life.number, life.due, life.run, status), id
            counts[status] += 1
        for status in self.module.Status:
            assert m.counts()[status] == counts[status]
        assert m.counts()["total"] == sum(counts.values())

    @invariant()
    def active_means_leased_and_blocked_means_beside_active(self) -> None:
        for id, job in self.m.jobs.items():
            head = self.ledger.heads.get(id)
            assert (job.status == "active") == (job.lease is not None) == (head is not None and head.active)
            assert job.lease is None or job.lease.worker in self.m.workers, "leased by nobody"
            assert job.status != "blocked"
            goes_on = job.series and job.series.repeat
            assert job.status not in ENDS or not goes_on, "a series that stopped by itself"
        for id, twin in self.m.twins.items():
            assert twin.status == "blocked" and self.m.jobs[id].status == "active"

    @invariant()
    def the_audit_holds(self) -> None:
        """live before + births = ends + live after: from the beginning to any point, so between any two."""
        tally = self.ledger.tally
        removed = sum(event.type == "removed" and event.status not in ENDS for event in self.m.events)
        ends = sum(tally[end] for end in ENDS) + removed + tally["merged"] + tally["lost in drop"]
        counts = self.m.counts()
        live = counts["total"] - sum(counts[end] for end in ENDS)
        assert sum(tally[birth] for birth in BIRTHS) == ends + live

    # in the end

    def teardown(self) -> None:
        """One healthy worker, and time: nothing is stuck, and no add is unaccounted for."""
        m = self.m
        self.call("c0", "resume")
        for id, job in list(m.jobs.items()):
            if job.status == "held" and job.reason != "unknown task":
                self.call("c0", "release", id)
        live = self.run_until_nothing_is_left()
        endless = {(job.id, job.life) for job in live}
        for added in self.ledger.acked:
            key = added
            while key in self.ledger.merged:
                key = self.ledger.merged[key]
            assert key in self.ledger.ended or key in endless, f"lost: {key}"
        self.states_and_counts_are_what_the_events_say()
        self.the_audit_holds()

    def run_until_nothing_is_left(self) -> list[Any]:
        """What is left in the end: jobs that repeat for ever."""
        m = self.m
        healthy = Worker("healthy", EVERY_TASK, self.time)
        self.workers = [healthy, None, None]
        m.join("healthy")
        for turn in range(200):
            self.move(reference.LEASE // 4)
            self.renew_now(healthy)
            healthy.claim = healthy.answered = healthy.claim + 1
            for run in m.claim("healthy", healthy.claim, 100, EVERY_TASK):
                assert m.leave_run(run, self.module.Outcome.SUCCEEDED)
            self.read_events()
            live = [job for job in m.jobs.values() if job.status not in ENDS]
            if all(job.series and job.series.repeat is True for job in live) and not m.twins:
                return live
            if turn > 8:
                later = [job.due for job in live if not (job.series and job.series.repeat is True)]
                self.move(max(0, min(later, default=0) - m.now))
        raise AssertionError(f"stuck: {m.jobs} {m.twins}")
