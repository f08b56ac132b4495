"""What a job costs the server: processor time of its life, with few and with very many waiting, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

from bench.anchor import Anchor
from bench.engine import payload
from bench.machine import main_thread_ns, note, used_memory
from bench.target import Target, figure
from skep import Queue, Retention, lifecycle
from skep.core.call import Call
from skep.core.codec import encode
from skep.core.ids import new_ids
from skep.core.outcome import Succeeded
from skep.core.record import pack
from skep.drafts import Template
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server

BATCH = 100
FEW, MANY = 1_000, 1_000_000
SAMPLE = 10_000
WARM = 40_000
"""Jobs that go their way before anything is measured: their events fill the stream, so that it is trimmed meanwhile."""
WORKER, LEASE = "bench", 600_000
KNOWS = pack([""])
LIKE = Template.of().like
DATA, RESULT = encode(payload()), b"5"


@dataclass(frozen=True, slots=True)
class Cost:
    """Server time per job, in us."""

    add: float
    claim: float
    settle: float

    @property
    def life(self) -> float:
        return self.add + self.claim + self.settle

    @property
    def serving(self) -> float:
        return self.claim + self.settle

    def __str__(self) -> str:
        return f"add {figure(self.add)}, claim {figure(self.claim)}, settle {figure(self.settle)} us"


class Cycle:
    """A queue whose jobs are added, claimed and settled by hand, through skep's own transport."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.queue = Queue("bench", server.url)
        self._store = Store(Connection(server.url))
        self._claims = 0
        self.send(lifecycle.join(self.queue.keys, WORKER, lease=LEASE, info={}))

    def send(self, call: Call[object]) -> object:
        return self._store.send(call)

    def fill(self, count: int) -> None:
        self.queue.add_many(repeat(payload(), count))

    def lives(self, count: int) -> Cost:
        """So many jobs begin, run and end, a tenth of them at a time; as many wait afterwards as before."""
        keys, spent = self.queue.keys, [0, 0, 0]
        for _ in range(10):
            adds = [
                lifecycle.add(keys, LIKE, [(id, DATA) for id in new_ids(BATCH)]) for _ in range(count // 10 // BATCH)
            ]
            spent[0] += self._cost(adds)
            begun = main_thread_ns(self._server.pid)
            claimed = [self._claim() for _ in adds]
            spent[1] += main_thread_ns(self._server.pid) - begun
            ends = [
                lifecycle.leave_run(keys, WORKER, list(zip(runs, repeat(Succeeded(RESULT)), strict=False)))
                for runs in claimed
            ]
            spent[2] += self._cost(ends)
        return Cost(*(ns / count / 1000 for ns in spent))

    def close(self) -> None:
        self._store.close()
        self.queue.close()

    def _cost(self, calls: Sequence[Call[object]]) -> int:
        begun = main_thread_ns(self._server.pid)
        for call in calls:
            self._store.send(call)
        return main_thread_ns(self._server.pid) - begun

    def _claim(self) -> list[lifecycle.Run]:
        self._claims += 1
        claimed = self._store.send(
            lifecycle.claim(self.queue.keys, WORKER, number=self._claims, slots=BATCH, lease=LEASE, knows=KNOWS)
        )
        assert claimed is not None, "its lease holds"
        assert len(claimed.runs) == BATCH, "enough jobs wait"
        return claimed.runs


@dataclass(slots=True)
class Passes:
    """What each pass cost: with few jobs waiting, with very many, and while finished jobs are pruned."""

    few: list[Cost] = field(default_factory=list[Cost])
    many: list[Cost] = field(default_factory=list[Cost])
    pruning: list[Cost] = field(default_factory=list[Cost])


def costs(anchor: Anchor, *, quick: bool) -> list[Target]:
    """Server time and memory of a job."""
    large = MANY // 4 if quick else MANY
    passes = Passes()
    small_bytes = _memory(SAMPLE)
    with Server() as here, Server() as there:
        few, many = Cycle(here), Cycle(there)
        few.fill(FEW)
        note(f"costs, filling a queue with {large:,} jobs")
        large_bytes = _fill(many, there, large)
        for cycle in (few, many):
            cycle.lives(WARM)
        for nth in range(3 if quick else 6):
            note(f"costs, pass {nth + 1}")
            anchor.measure_raw()
            passes.few.append(few.lives(10_000))
            passes.many.append(many.lives(10_000))
        few.queue.configure(retention=Retention(max_succeeded=10_000))
        few.lives(WARM)
        passes.pruning += [few.lives(10_000) for _ in passes.few]
        few.close()
        many.close()
    memory = [_memory_target(SAMPLE, small_bytes, 140), _memory_target(large, large_bytes, 120)]
    return [_serving_target(anchor, passes), *memory, _depth_target(passes, large)]


def _serving_target(anchor: Anchor, passes: Passes) -> Target:
    pruning = min(each.serving for each in passes.pruning)
    scale, by = anchor.server()
    return Target(
        part="engine",
        name="claim and settle, batches of 100, full events",
        goal=4,
        unit="us of server time",
        value=min(each.serving for each in passes.few),
        at_most=True,
        scale=scale,
        scaled_by=by,
        note=f"{_least(passes.few)}; {figure(pruning)} us while as many finished jobs are pruned as end",
    )


def _memory_target(jobs: int, measured: float, goal: float) -> Target:
    return Target(
        part="engine",
        name=f"memory of a waiting job, {jobs:,} jobs",
        goal=goal,
        unit="bytes",
        value=measured,
        at_most=True,
        note="events with their data counted",
    )


def _depth_target(passes: Passes, jobs: int) -> Target:
    few, many = _least(passes.few), _least(passes.many)
    return Target(
        part="engine",
        name=f"server time of a life, {jobs:,} waiting against {FEW:,}",
        goal=2.5,
        unit="times",
        value=many.life / few.life,
        at_most=True,
        note=f"{many}, against {few}",
    )


def _least(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda cost: cost.life)


def _fill(cycle: Cycle, server: Server, count: int) -> float:
    """Fills a queue; bytes per job."""
    cycle.fill(BATCH)
    with server.client() as client:
        before = used_memory(client, clients=3)
        cycle.fill(count)
        return (used_memory(client, clients=3) - before) / count


def _memory(count: int) -> float:
    """Bytes per waiting job in a queue of so many."""
    with Server() as server, server.client() as client:
        with Queue("bench", server.url) as queue:
            queue.add(payload())  # the scripts are there
        client.flushall(asynchronous=False)
        before = used_memory(client)
        with Queue("bench", server.url) as queue:
            queue.add_many(repeat(payload(), count))
        return (used_memory(client) - before) / count
