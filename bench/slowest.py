"""The longest a script keeps the server, each in the largest batch that the library sends by default.

The time of a call is the lesser of two that are both never too small: the server's own clock (commandstats, which runs
on while somebody else has the processor) and the processor time of its thread (which also has the reading of the
request and the writing of the reply in it).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import repeat

from bench.anchor import Anchor
from bench.machine import main_thread_ns, note
from bench.target import Target, figure
from skep import lifecycle, views
from skep.acts import MOST_IN_A_TRIP
from skep.adding import by_size
from skep.core.call import Call
from skep.core.ids import new_ids
from skep.core.keys import Keys
from skep.core.outcome import Failed, Outcome, Retried, Succeeded
from skep.core.record import pack
from skep.drafts import Template
from skep.lifecycle import Run
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server

TRIP = 500
SLICE = 100
SLOTS = 100
DEFAULT_SLOTS = 10
LEASE = 600_000
LARGE = b'"' + b"x" * ((64 << 10) - 2) + b'"'
SMALL = b'{"x":2,"y":3}'
ERROR = b'{"type":"ValueError","message":"no","traceback":"' + b"x" * 2000 + b'","kind":"error"}'
LIKE = Template.of().like
KNOWS = pack([""])
Times = dict[str, list[float]]
Act = Callable[[list[lifecycle.Target]], Call[object]]


class Watch:
    """A queue, and how long its scripts take."""

    def __init__(self, server: Server, times: Times) -> None:
        self._server = server
        self._client = server.client()
        self._times = times
        self._claims = 0
        self.store = Store(Connection(server.url))
        self.keys = Keys("bench")
        self.store.send(lifecycle.join(self.keys, "w", lease=LEASE, info={}))

    def timed(self, name: str, call: Call[object]) -> object:
        """Sends it, and notes how many microseconds the server took."""
        self._spent()
        ran, spent = self._ran(), self._spent()
        answer = self.store.send(call)
        spent = self._spent() - spent
        self._times.setdefault(name, []).append(min(self._ran() - ran, spent))
        return answer

    def _ran(self) -> float:
        return float(self._client.info("commandstats").get("cmdstat_evalsha", {}).get("usec", 0))

    def _spent(self) -> float:
        # The kernel brings the time of a thread up to date when that goes to sleep.
        time.sleep(0.001)
        return main_thread_ns(self._server.pid) / 1000

    def add(self, data: bytes, count: int, **more: int) -> list[str]:
        """Jobs that wait, added without being watched."""
        like = Template.of(more).like if more else LIKE
        ids = new_ids(count)
        for part in by_size(list(zip(ids, repeat(data), strict=False)), lambda each: len(each[1])):
            self.store.send(lifecycle.add(self.keys, like, part))
        return ids

    def claim(self, slots: int, name: str = "") -> list[Run]:
        """Runs of the next jobs; watched where it has a name."""
        self._claims += 1
        call = lifecycle.claim(self.keys, "w", number=self._claims, slots=slots, lease=LEASE, knows=KNOWS)
        if name:
            self.timed(name, call)
            return []
        claimed = self.store.send(call)
        assert claimed is not None, "its lease holds"
        assert len(claimed.runs) == slots, "enough jobs wait"
        return claimed.runs

    def clear(self) -> None:
        """Nothing is left of jobs."""
        self.store.send(lifecycle.drop(self.keys))
        self.store.send(lifecycle.join(self.keys, "w", lease=LEASE, info={}))

    def close(self) -> None:
        self._client.close()
        self.store.close()


def scripts(anchor: Anchor, *, quick: bool) -> list[Target]:
    """The slowest script of all, with small payloads and with large ones."""
    found: list[Target] = []
    for size, data in (("small payloads", SMALL), ("payloads of 64 KiB", LARGE)):
        worst: dict[str, float] = {}
        for nth in range(2 if quick else 4):
            note(f"scripts, {size}, pass {nth + 1}")
            anchor.measure_raw()
            for name, each in _pass(data, 3 if quick else 6).items():
                worst[name] = min(max(each), worst.get(name, float("inf")))
        ranked = sorted(worst.items(), key=lambda item: -item[1])
        scale, by = anchor.server()
        found.append(
            Target(
                part="engine",
                name=f"slowest script, default batches, {size}",
                goal=2,
                unit="ms",
                value=ranked[0][1] / 1000,
                at_most=True,
                scale=scale,
                scaled_by=by,
                note=", ".join(f"{name} {figure(took / 1000)}" for name, took in ranked[:6]),
            )
        )
    return found


def _pass(data: bytes, rounds: int) -> Times:
    times: Times = {}
    with Server() as server:
        watch = Watch(server, times)
        for round in range(rounds + 1):
            if round == 1:
                times.clear()  # the first round has loaded the scripts
            for case in (_adds, _runs, _upkeep, _acts, _looks, _writes):
                watch.clear()
                case(watch, data)
        watch.close()
    return times


def _fits(data: bytes, count: int, most: int = 256 << 10) -> int:
    """So many at most, or as many as fit into a trip."""
    return min(count, max(1, most // len(data)))


def _adds(watch: Watch, data: bytes) -> None:
    count = _fits(data, TRIP)
    jobs = list(zip(new_ids(count), repeat(data), strict=False))
    watch.timed(f"add {count}", lifecycle.add(watch.keys, LIKE, jobs))
    drafts = [Template.of({"id": f"own-{n}"}).draft(data) for n in range(_fits(data + b" " * 64, TRIP))]
    watch.timed(f"upsert {len(drafts)} new", lifecycle.upsert(watch.keys, drafts))
    watch.timed(f"upsert {len(drafts)} known", lifecycle.upsert(watch.keys, drafts))


def _runs(watch: Watch, data: bytes) -> None:
    slots = SLOTS if data is SMALL else DEFAULT_SLOTS
    watch.add(data, slots)
    watch.claim(slots, f"claim {slots}")
    for name, count, outcome in _ends(data):
        watch.clear()
        watch.add(SMALL, count)
        runs = watch.claim(count)
        if outcome is not None:
            watch.timed(f"{name} {count}", lifecycle.leave_run(watch.keys, "w", [(run, outcome) for run in runs]))
        else:
            named = [(run.id, run.lease) for run in runs]
            watch.timed(
                f"{name} {count}",
                lifecycle.renew(watch.keys, "w", lease=LEASE, answered=1 << 40, runs=named),
            )


def _ends(data: bytes) -> Iterator[tuple[str, int, Outcome | None]]:
    result = b"5" if data is SMALL else LARGE
    yield "succeeded", _fits(result, TRIP), Succeeded(result)
    yield "retried", SLOTS, Retried(60_000, ERROR)
    yield "failed", SLOTS, Failed(ERROR)
    yield "renew", SLOTS, None


def _upkeep(watch: Watch, data: bytes) -> None:
    count = TRIP if data is SMALL else SLOTS
    watch.add(data, count, delay=1)
    time.sleep(0.11)
    watch.claim(DEFAULT_SLOTS, f"claim {DEFAULT_SLOTS} and promote {count}")
    watch.clear()
    drafts = [Template.of({"lasts": 1}).draft(data) for _ in range(count)]
    for part in by_size(drafts, lambda draft: len(draft.data)):
        watch.store.send(lifecycle.upsert(watch.keys, part))
    time.sleep(0.002)
    watch.timed(f"upkeep, {count} expire", lifecycle.upkeep(watch.keys))
    watch.clear()
    watch.add(data, count)
    watch.claim(count)
    watch.timed(f"leave, {count} stall", lifecycle.leave(watch.keys, "w", died=True))


def _acts(watch: Watch, data: bytes) -> None:
    keys = watch.keys
    acts: list[tuple[str, Act]] = [
        ("hold", lambda targets: lifecycle.hold(keys, targets)),
        ("release", lambda targets: lifecycle.release(keys, targets)),
        ("update", lambda targets: lifecycle.update(keys, targets, options={"priority": 20})),
        ("cancel", lambda targets: lifecycle.cancel(keys, targets)),
        ("revive", lambda targets: lifecycle.revive(keys, targets)),
        ("cancel again", lambda targets: lifecycle.cancel(keys, targets)),
        ("redact", lambda targets: lifecycle.redact(keys, targets)),
        ("remove", lambda targets: lifecycle.remove(keys, targets)),
    ]
    watch.clear()
    targets: list[lifecycle.Target] = [(id, None) for id in watch.add(data, MOST_IN_A_TRIP)]
    for name, act in acts:
        watch.timed(f"{name} {len(targets)}", act(targets))


def _looks(watch: Watch, data: bytes) -> None:
    ids = watch.add(data, SLICE)
    watch.timed("counts", views.counts(watch.keys))
    watch.timed(f"look {len(ids)}", views.look(watch.keys, ids))
    watch.timed("page of 100", views.page(watch.keys, "jobs", "0", 100))
    watch.timed("feed", views.feed(watch.keys, after=0))


def _writes(watch: Watch, data: bytes) -> None:
    count = _fits(data, TRIP)
    jobs = list(zip(new_ids(count), repeat(data), strict=False))
    token = new_ids(1)[0]
    watch.timed(f"stage {count}", lifecycle.stage(watch.keys, token, ttl=60_000, like=LIKE, jobs=jobs))
    watch.timed("decide", lifecycle.decide(watch.keys, token, [token], remember=60_000))
    watch.timed(f"move {count}", lifecycle.move(watch.keys))
