"""Jobs as they are now: walked through by one cursor per queue, which cannot skip what stays put.

Plain Python: what Spark calls stands in `live.py`. A job that moves while it is read may be seen in one place or the
other, and twice; one that stays is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from skep import views
from skep.core.job import NOTHING, Known, Lease, decode_known
from skep.core.keys import Keys
from skep.core.record import is_known
from skep.core.states import FINISHED, JobState
from skep.spark.columns import Columns, Head, Heads, error_columns, needed
from skep.spark.schema import ArrowBatch, ArrowSchema
from skep.store.sync import Store
from skep.views import LETTERS, Walked

ROWS_IN_A_BATCH = 10_000
BYTES_IN_A_BATCH = 8 << 20
BYTES_IN_A_TRIP = 262_144
AT_FIRST, AT_MOST = 50, 300
IDS_IN_A_TRIP = 500
ONCE = Known(runs=1, attempts=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Which jobs are wanted; of an empty set all."""

    ids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()

    def takes(self, id: str, head: Head, status: str) -> bool:
        """Whether a job is wanted."""
        return (
            (not self.statuses or status in self.statuses)
            and (not self.names or head.options.get("name") in self.names)
            and (not self.ids or id in self.ids)
        )


@dataclass(frozen=True, slots=True)
class JobsOf:
    """The jobs of one queue: what one Spark task reads."""

    queue: str
    prefix: str = "skep"
    picked: Picked = field(default_factory=Picked)


def read(store: Store, part: JobsOf, schema: ArrowSchema) -> Iterator[ArrowBatch]:
    """The jobs of a queue as Arrow batches with the columns of this schema."""
    whole = needed(schema, ["data", "result", "error_type", "error_message", "error_kind", "error_traceback", "reason"])
    jobs, size = JobColumns(part, schema), 0
    for walked in _walk(store, part, whole=whole):
        jobs.take(walked)
        size += _size(walked)
        if jobs.rows >= ROWS_IN_A_BATCH or size >= BYTES_IN_A_BATCH:
            yield jobs.batch()
            jobs, size = JobColumns(part, schema), 0
    if jobs.rows:
        yield jobs.batch()


def _walk(store: Store, part: JobsOf, *, whole: bool) -> Iterator[Walked]:
    keys, picked = Keys(part.queue, part.prefix), part.picked
    if picked.ids or picked.names or _stand_apart(picked.statuses):
        ids = _ids(store, keys, picked)
        while some := list(islice(ids, IDS_IN_A_TRIP)):
            yield store.send(views.walk(keys, ids=some, whole=whole))
        return
    cursor, count = "0", AT_FIRST
    while True:
        walked = store.send(views.walk(keys, cursor, count=count, whole=whole))
        yield walked
        cursor = walked.cursor
        if cursor == "0":
            return
        # Large jobs come in smaller slices: a slice is a single script on a live server.
        count = max(1, min(AT_MOST, 2 * count, count * BYTES_IN_A_TRIP // max(1, _size(walked))))


def _size(walked: Walked) -> int:
    return sum(map(len, walked.records)) + sum(map(len, walked.beside))


def _stand_apart(statuses: frozenset[str]) -> bool:
    """Whether there are lists of ids for each of them. Those that wait stand in lists by rank, which move."""
    return bool(statuses) and JobState.WAITING not in statuses


def _ids(store: Store, keys: Keys, picked: Picked) -> Iterator[str]:
    if picked.ids:
        yield from sorted(picked.ids)
        return
    places = sorted(picked.statuses)
    if picked.names:
        places = [f"name:{name}" for name in sorted(picked.names)]
    for place in places:
        cursor = "0"
        while True:
            cursor, ids = store.send(views.page(keys, place, cursor, IDS_IN_A_TRIP))
            yield from ids
            if cursor == "0":
                break


class JobColumns(Columns):
    """Takes slices of jobs, gives columns."""

    def __init__(self, part: JobsOf, schema: ArrowSchema) -> None:
        super().__init__(schema)
        self._part = part
        self._heads = Heads()
        self._leases: dict[bytes, Lease] = {}

    def take(self, walked: Walked) -> None:
        """The jobs of a slice, each once; and the second jobs of their ids."""
        nothing = [None] * len(walked.ids)
        counts, twins = walked.counts or nothing, walked.twins or nothing
        seen = set[bytes]()
        for id, raw, letter, beside, packed, twin in zip(
            walked.ids, walked.records, walked.letters, walked.beside, counts, twins, strict=True
        ):
            if id not in seen:
                seen.add(id)
                self._take_one(id, raw, LETTERS[letter], beside, packed)
                if twin:
                    self._take_one(id, twin, JobState.BLOCKED, b"", None)

    def _take_one(self, id: bytes, raw: bytes, status: JobState, beside: bytes, packed: bytes | None) -> None:
        if not is_known(raw):
            return
        head, end = self._heads.read(raw)
        name = id.decode()
        if not self._part.picked.takes(name, head, status):
            return
        finished = int.from_bytes(beside[:6], "big") if status in FINISHED else None
        known = decode_known(packed) if packed else ONCE if status is JobState.SUCCEEDED else NOTHING
        row, dense = self.rows, self.dense
        for column, value in (
            ("id", name),
            ("life", head.life),
            ("queue", self._part.queue),
            ("task", head.task or None),
            ("status", str(status)),
            ("attempts", known.attempts),
            ("failures", known.failures),
            ("stalls", known.stalls),
            ("timeouts", known.timeouts),
            ("created_at", head.created),
            ("run_at", head.due),
            ("finished_at", finished),
            ("started_at", known.began),
            ("data", raw[end:].decode() or None),
            ("priority", head.options.get("priority") or 40),
        ):
            dense[column].append(value)
        for column, option in (("name", "name"), ("meta", "meta"), ("write", "write"), ("expires_at", "expires")):
            if value := head.options.get(option):
                self.sparse[column][row] = value
        self._take_beside(row, status, beside, known)
        self.rows += 1

    def _take_beside(self, row: int, status: JobState, beside: bytes, known: Known) -> None:
        sparse = self.sparse
        if status is JobState.HELD:
            sparse["reason"][row] = beside.decode()
        elif status is JobState.ACTIVE:
            self._take_lease(row, beside)
        elif status in FINISHED:
            size = beside[6]
            if size:
                self._take_lease(row, beside[7 : 7 + size])
            self._take_ending(row, status, beside[7 + size :])
        if known.error and status is not JobState.FAILED:
            error_columns(sparse, row, known.error.encode())

    def _take_ending(self, row: int, status: JobState, text: bytes) -> None:
        if not text:
            return
        if status is JobState.FAILED:
            error_columns(self.sparse, row, text)
        else:
            self.sparse["result" if status is JobState.SUCCEEDED else "reason"][row] = text.decode()

    def _take_lease(self, row: int, text: bytes) -> None:
        lease = self._leases.get(text)
        if lease is None:
            lease = self._leases[text] = Lease.read(text)
        self.sparse["worker"][row] = lease.worker
        self.sparse["started_at"][row] = lease.started
