"""Every interleaving of the wake-up protocol of a queue, in small: who comes when there is something to take?

A hand-made picture of `claim`, `renew`, `leave`, `pause`, the adds and `lib/waker` on the server's side, and of
`worker/fetch.py` on the other. What it proves, it proves of the picture: `tests/scripts/test_wakeups.py` is the test of
the scripts themselves. Time is abstract, jobs have due times 1, 2, ..., and it may pass at any moment, also while a
claim or its answer is on its way. That claims take over the duty of one who is late is left out, which is stricter.

Steps of workers (`own`) happen by themselves; all others need not happen. So a state in which no worker has a step to
take is silence, and silence while there is a job to take and a worker with room for it is a lost wake-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

FENCED = -1
"""Instead of a number of jobs: this worker is not registered any more."""

LOST = "a job waits, a worker has room for it, and nobody comes"
LATE = "a job set aside waits for the renewal of a worker that knows its task"
HOPELESS = "somebody must come, and not even a renewal wakes anybody"
ENDLESS = "workers send claims for ever"

BUGS = {
    "full drops the marker": "who took the marker and became full told nobody of the job that is due next",
    "skips taken for drained": "a claim that used up its rounds on cancelled entries took that for an empty queue",
    "head 0 keeps the duty": "a claim that replied no time did not give the duty back",
    "resend forgets the time": "a claim said again replied no time, though the server counted on its coming",
    "fenced drops the marker": "who took the marker and learned that it was fenced, and had no room, told nobody",
    "leave tells nobody": "a worker that is gone took its duty and a marker with it",
    "resume tells nobody": "jobs that came while the queue was paused waited for the next add",
    "later due wakes": "only a job that is due later than the duty woke somebody",
    "renewals tell nobody": "after a death, a job waited until the dead worker was fenced",
    "aside tells nobody": "a job set aside waited for the renewal of who knows its task",
    "asking without end": "workers that do not know the task handed the marker round for ever",
    "asking half of them": "fewer were asked than there are",
}
"""Deliberate bugs, by which the model shows that it would see them."""


class Budget(NamedTuple):
    """What may still happen: each so many times, at any moment."""

    ready: int = 0
    delayed: tuple[int, ...] = ()
    odd: int = 0  # jobs of a task that not all workers know
    skips: int = 0  # claims that use up their rounds on cancelled entries
    cancels: int = 0  # of the delayed job that is due first
    resends: int = 0  # claims whose answer is lost, so that they are said again
    pauses: int = 0  # of the queue, or its resumption
    shuts: int = 0  # a worker that takes nothing more, or does again
    deaths: int = 0
    fences: int = 0  # of a worker that lives; 0 or 1


class Worker(NamedTuple):
    """One worker, as `Fetch` has it; the last five are a claim on its way."""

    cap: int = 1
    knows: bool = True
    used: int = 0
    hungry: bool = True
    woken: bool = False
    open: bool = True
    timer: int = 0
    alive: bool = True
    fenced: bool = False
    phase: str = "rests"  # asks: a claim is on its way; hears: its answer is
    slots: int = 0
    got: int = 0
    head: int = 0


class State(NamedTuple):
    """The queue at its server, and all workers."""

    workers: tuple[Worker, ...]
    budget: Budget
    listening: tuple[int, ...] = ()
    now: int = 0
    ready: int = 0
    odd: int = 0
    aside: int = 0
    asking: int = 0
    delayed: tuple[int, ...] = ()
    marker: bool = False
    duty: tuple[int, int] | None = None
    paused: bool = False


class Loss(NamedTuple):
    """What was found, and the way there."""

    what: str
    path: list[State]


class Found(NamedTuple):
    """What an exploration saw."""

    states: int
    losses: list[Loss]


class Protocol:
    """The rules.

    `fifo`: the marker goes to who has waited longest, as servers do it; else to anybody who waits.
    `wire`: a claim and its answer are on their way for a while; else all of it is one step.
    """

    def __init__(self, *, bug: str = "", fifo: bool = False, wire: bool = True) -> None:
        assert not bug or bug in BUGS, bug
        self.bug = bug
        self.fifo = fifo
        self.wire = wire

    # The server's side.

    def claim(self, state: State, by: int) -> Iterator[State]:
        """What `claim.lua` does, with every outcome it may have."""
        worker = state.workers[by]
        if worker.fenced:
            yield self._answer(state, by, FENCED, 0)
            return
        if state.paused:
            yield self._told(state, by, 0, more=False)
            return
        state = promoted(state)
        back = min(worker.slots, state.aside) if worker.knows else 0
        state = state._replace(odd=state.odd + back, aside=state.aside - back)
        for taken, after in self._taken(state, worker):
            yield self._told(after, by, taken, more=False)
        if state.budget.skips and worker.slots:
            budget = state.budget._replace(skips=state.budget.skips - 1)
            for taken in range(min(worker.slots, state.ready + 1)):
                after = state._replace(budget=budget, ready=state.ready - taken)
                yield self._told(after, by, taken, more=self.bug != "skips taken for drained")

    def _taken(self, state: State, worker: Worker) -> Iterator[tuple[int, State]]:
        """How many it gets, in every order in which jobs of both kinds may stand."""
        slots = worker.slots
        if worker.knows:
            total = min(slots, state.ready + state.odd)
            for odd in range(max(0, total - state.ready), min(total, state.odd) + 1):
                yield total, state._replace(ready=state.ready - total + odd, odd=state.odd - odd)
            return
        total = min(slots, state.ready)
        for met in range(state.odd if total < slots else 0, state.odd + 1 if slots else 1):
            after = state._replace(ready=state.ready - total, odd=state.odd - met)
            yield total, self.set_aside(after, met) if met else after

    def set_aside(self, state: State, jobs: int) -> State:
        """`place.put_aside` of each."""
        if not state.aside and self.bug != "aside tells nobody":
            state = self.ask(state)
        return state._replace(aside=state.aside + jobs)

    def ask(self, state: State) -> State:
        """`waker.ask`."""
        leases = sum(worker.phase != "gone" and not worker.fenced for worker in state.workers)
        return state._replace(asking=leases // 2 if self.bug == "asking half of them" else leases, marker=True)

    def pause(self, state: State) -> State:
        """The queue is paused, or resumed."""
        state = state._replace(paused=not state.paused)
        return state if state.paused or self.bug == "resume tells nobody" else self.ask(state)

    def _told(self, state: State, by: int, taken: int, *, more: bool) -> State:
        """The second half of `claim.lua`: the marker, the duty, and the answer."""
        mine = state.duty is not None and state.duty[0] == by
        at = state.duty[1] if state.duty else 0
        asking = False
        if not state.paused:
            state, asking = self._ask_next(state)
        head = 0 if state.paused or not state.delayed else state.delayed[0]
        if state.paused or taken >= state.workers[by].slots or more:
            if mine and not (self.bug == "head 0 keeps the duty" and more):
                state, at = state._replace(duty=None), 0
            due = mine and head > 0 if self.bug == "full drops the marker" else is_due(head, at)
            if not state.paused and (more or state.ready or state.odd or due):
                state = state._replace(marker=True)
            return self._answer(state, by, taken, 0)
        duty = None
        if head:
            duty, head = ((by, head), head) if mine or is_due(head, at) else (state.duty, 0)
        return self._answer(state._replace(duty=duty, marker=asking and state.marker), by, taken, head)

    def _ask_next(self, state: State) -> tuple[State, bool]:
        if not state.asking or not state.aside:
            return state._replace(asking=0), False
        if not state.marker:
            left = state.asking if self.bug == "asking without end" else state.asking - 1
            state = state._replace(asking=left, marker=True)
        return state, True

    def _answer(self, state: State, by: int, taken: int, head: int) -> State:
        return with_worker(state, by, phase="hears", got=taken, head=head)

    def resent(self, state: State, by: int) -> State:
        """The same claim once more."""
        duty = state.duty if self.bug != "resend forgets the time" else None
        state = state._replace(budget=state.budget._replace(resends=state.budget.resends - 1))
        return with_worker(state, by, head=duty[1] if duty and duty[0] == by else 0)

    def renew(self, state: State, by: int) -> State:
        """What a renewal does to the marker, and to who renews."""
        if state.workers[by].fenced:
            return state
        state = promoted(state)
        head = state.delayed[0] if state.delayed else 0
        if self.bug == "renewals tell nobody":
            return state
        if state.ready or state.odd or is_due(head, state.duty[1] if state.duty else 0):
            state = state._replace(marker=True)
        return with_worker(state, by, woken=True) if state.aside else state

    def bury(self, state: State, by: int) -> State:
        """A worker leaves, or is fenced: what it runs waits again."""
        worker = state.workers[by]
        runs = worker.used + (worker.got if worker.phase == "hears" else 0)
        if self.bug == "leave tells nobody":
            return state._replace(ready=state.ready + runs, marker=state.marker or runs > 0)
        duty = None if state.duty and state.duty[0] == by else state.duty
        return state._replace(ready=state.ready + runs, duty=duty, marker=True)

    def add_delayed(self, state: State, due: int) -> State:
        """One more delayed job; it may be due already when it arrives."""
        if due <= state.now:
            return state._replace(ready=state.ready + 1, marker=True)
        at = state.duty[1] if state.duty else 0
        wakes = at < due if self.bug == "later due wakes" and at else is_due(due, at)
        return state._replace(delayed=tuple(sorted((*state.delayed, due))), marker=state.marker or wakes)

    # The workers' side.

    def own(self, state: State) -> Iterator[State]:
        """Steps of workers, which happen by themselves."""
        for by, worker in enumerate(state.workers):
            if not worker.alive:
                continue
            if worker.timer and worker.timer <= state.now:
                yield with_worker(state, by, woken=True, timer=0)
            if worker.phase == "asks":
                yield from self.claim(state, by)
            elif worker.phase == "hears":
                yield self.hear(state, by)
            elif worker.woken or (worker.hungry and worker.open and worker.used < worker.cap):
                slots = worker.cap - worker.used if worker.open else 0
                asks = with_worker(state, by, phase="asks", slots=slots, hungry=True, woken=False)
                if self.wire:
                    yield asks
                else:
                    yield from (self.hear(hears, by) for hears in self.claim(asks, by))
        if state.marker:
            for by in state.listening[:1] if self.fifo else state.listening:
                yield self.wake(state, by)

    def wake(self, state: State, by: int) -> State:
        """One who waits takes the marker, and waits again if it is idle."""
        others = tuple(other for other in state.listening if other != by)
        state = state._replace(marker=False, listening=others)
        state = with_worker(state, by, woken=True)
        return state if state.workers[by].hungry else self._listens(state, by)

    def _listens(self, state: State, by: int) -> State:
        if by in state.listening:
            return state
        listening = (*state.listening, by)
        return state._replace(listening=listening if self.fifo else tuple(sorted(listening)))

    def hear(self, state: State, by: int) -> State:
        """The answer of a claim arrives."""
        worker = state.workers[by]
        rests = {"phase": "rests", "slots": 0, "got": 0, "head": 0, "timer": 0}
        if worker.got == FENCED:
            woken = worker.woken or self.bug != "fenced drops the marker"
            return with_worker(state, by, **rests, fenced=False, woken=woken)
        rests["timer"] = worker.head
        hungry = worker.got >= worker.slots
        state = with_worker(state, by, **rests, used=worker.used + worker.got, hungry=hungry)
        return state if hungry else self._listens(state, by)

    # What may happen.

    def others(self, state: State) -> Iterator[State]:
        """All steps but those of workers."""
        yield from self._adds(state)
        yield from self._deaths(state)
        left = state.budget
        if any(due > state.now for due in (*state.delayed, *left.delayed)):
            yield state._replace(now=state.now + 1)
        if left.cancels and state.delayed:
            yield state._replace(budget=left._replace(cancels=left.cancels - 1), delayed=state.delayed[1:])
        if left.pauses:
            yield self.pause(state._replace(budget=left._replace(pauses=left.pauses - 1)))
        for by, worker in enumerate(state.workers):
            if not worker.alive:
                continue
            if worker.used:
                yield with_worker(state, by, used=worker.used - 1)
            if worker.phase == "hears" and worker.got != FENCED and left.resends:
                yield self.resent(state, by)
            if left.shuts:
                shut = state._replace(budget=left._replace(shuts=left.shuts - 1))
                yield with_worker(shut, by, open=not worker.open, woken=True, timer=0)
            yield self.renew(state, by)

    def _adds(self, state: State) -> Iterator[State]:
        left = state.budget
        if left.ready:
            yield state._replace(budget=left._replace(ready=left.ready - 1), ready=state.ready + 1, marker=True)
        if left.odd:
            yield state._replace(budget=left._replace(odd=left.odd - 1), odd=state.odd + 1, marker=True)
        for place, due in enumerate(left.delayed):
            rest = left.delayed[:place] + left.delayed[place + 1 :]
            yield self.add_delayed(state._replace(budget=left._replace(delayed=rest)), due)

    def _deaths(self, state: State) -> Iterator[State]:
        left, alive = state.budget, sum(worker.alive for worker in state.workers)
        for by, worker in enumerate(state.workers):
            if not worker.alive:
                if worker.phase != "gone" and alive:
                    yield with_worker(self.bury(state, by), by, phase="gone", used=0, got=0)
            elif left.deaths and alive > 1:
                listening = tuple(other for other in state.listening if other != by)
                died = state._replace(budget=left._replace(deaths=left.deaths - 1), listening=listening)
                phase = "gone" if worker.fenced or worker.got == FENCED else worker.phase
                yield with_worker(died, by, alive=False, woken=False, timer=0, hungry=False, phase=phase)
            if worker.alive and left.fences and not worker.fenced:
                fenced = self.bury(state, by)._replace(budget=left._replace(fences=0))
                yield with_worker(fenced, by, fenced=True)


def is_due(due: int, at: int) -> bool:
    """`waker.is_due`; 0 is none."""
    return due > 0 and (not at or at > due)


def promoted(state: State) -> State:
    """Due jobs wait."""
    later = tuple(due for due in state.delayed if due > state.now)
    return state._replace(ready=state.ready + len(state.delayed) - len(later), delayed=later)


def with_worker(state: State, by: int, **changes: object) -> State:
    """The state in which this is different of one worker."""
    worker = state.workers[by]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(workers=(*state.workers[:by], worker, *state.workers[by + 1 :]))


def canonical(state: State) -> State:
    """Of states that differ only in which of two equal workers is which, one."""
    holder = state.duty[0] if state.duty else -1
    marked = [(worker, by in state.listening, by == holder, by) for by, worker in enumerate(state.workers)]
    marked.sort()
    workers = tuple(each[0] for each in marked)
    listening = tuple(place for place, each in enumerate(marked) if each[1])
    places = {each[3]: place for place, each in enumerate(marked)}
    duty = (places[holder], state.duty[1]) if state.duty else None
    return state._replace(workers=workers, listening=listening, duty=duty)


def waits(state: State) -> str:
    """Of silence: which job could be taken by somebody who has room, or set aside."""
    able = [each for each in state.workers if each.alive and each.open and each.used < each.cap]
    if state.paused or not able:
        return ""
    if state.ready or state.odd or (state.delayed and state.delayed[0] <= state.now):
        return LOST
    return LATE if state.aside and any(each.knows for each in able) else ""


def has_died(state: State) -> bool:
    """Whether a worker is dead that nobody has fenced yet: until then only renewals wake."""
    return any(not worker.alive and worker.phase != "gone" for worker in state.workers)


def explore(protocol: Protocol, start: State, *, loops: bool = True) -> Found:
    """All states that can be reached, and the first loss of each kind. `loops`: looks for steps without end, too."""
    number: dict[State, int] = {start: 0}
    states, parents, owned = [start], [0], list[list[int]]()
    losses: dict[str, int] = {}
    for at, state in enumerate(states):
        after = list(protocol.own(state))
        if not after:
            what = loss(protocol, state)
            if what:
                losses.setdefault(what, at)
        own = len(after)
        after.extend(protocol.others(state))
        if not protocol.fifo:
            after = [canonical(each) for each in after]
        for each in after:
            if each not in number:
                number[each] = len(states)
                states.append(each)
                parents.append(at)
        if loops:
            owned.append([number[each] for each in after[:own]])
    if loops:
        turning = endless(owned)
        if turning is not None:
            losses[ENDLESS] = turning
    return Found(len(states), [Loss(what, way(states, parents, at)) for what, at in losses.items()])


def loss(protocol: Protocol, state: State) -> str:
    """What is wrong with a silence."""
    found = waits(state)
    if not found:
        return ""
    for by, worker in enumerate(state.workers):
        if worker.alive and not worker.fenced and not any(True for _ in protocol.own(protocol.renew(state, by))):
            return HOPELESS
    return "" if has_died(state) else found


def endless(edges: list[list[int]]) -> int | None:
    """A node from which a way never ends."""
    incoming = [0] * len(edges)
    for targets in edges:
        for target in targets:
            incoming[target] += 1
    free = [node for node, count in enumerate(incoming) if not count]
    for node in free:
        for target in edges[node]:
            incoming[target] -= 1
            if not incoming[target]:
                free.append(target)
    return next((node for node, count in enumerate(incoming) if count), None)


def way(states: list[State], parents: list[int], at: int) -> list[State]:
    """How it came to this."""
    path = [states[at]]
    while at:
        at = parents[at]
        path.append(states[at])
    return path[::-1]
