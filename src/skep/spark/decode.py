"""Events as the columns of the table `events`, entry by entry.

`core/events.py` says how an entry is written, and reads it event by event. Here are millions of them: what an entry,
a claim or a record head tells of many events is worked out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from skep.core import record
from skep.core.codec import encode
from skep.core.events import IMPLIED, TYPES
from skep.core.job import Lease
from skep.spark.columns import Columns, Heads, error_columns
from skep.spark.feed import Entry, Slice, is_gappy
from skep.spark.schema import ArrowBatch, ArrowSchema

ROWS_IN_A_BATCH = 10_000
BYTES_IN_A_BATCH = 8 << 20
PLAIN = "added"
ADDED = range(record.FIRST_LETTER, record.FIRST_LETTER + record.LETTERS)

# The count of attempts when nothing is told of it: the job ran once, and succeeded.
ONCE = {"succeeded": 1}
AS_TOLD = frozenset(("status", "began", "reason", "data", "result", "left_out"))
COUNTS = frozenset(("run", "attempts", "failures", "stalls", "timeouts"))


def batches(entries: Iterable[list[Entry]], part: Slice, schema: ArrowSchema) -> Iterator[ArrowBatch]:
    """The events of a slice as Arrow batches with the columns of this schema: what Spark takes from a source."""
    events, size = EventColumns(part, schema), 0
    for some in entries:
        for entry in some:
            events.take(entry)
            size += sum(map(len, entry[1]))
        if events.rows >= ROWS_IN_A_BATCH or size >= BYTES_IN_A_BATCH:
            yield events.batch()
            events, size = EventColumns(part, schema), 0
    if events.rows:
        yield events.batch()


class EventColumns(Columns):
    """Takes entries, gives columns. Events outside of its slice are passed over."""

    def __init__(self, part: Slice, schema: ArrowSchema) -> None:
        super().__init__(schema)
        self._part = part
        self._heads = Heads()
        self._details: dict[bytes, Mapping[str, Any]] = {}
        self._leases: dict[str, Lease] = {}

    def take(self, entry: Entry) -> None:
        """The events of an entry."""
        fields = entry[1]
        last, first = int(entry[0].partition(b"-")[0]), 4
        if is_gappy(fields):
            first = 8
            numbers: Sequence[int] = record.unpack(fields[7])
        else:
            numbers = range(last - (len(fields) - 4) // 2 + 1, last + 1)
        jobs, bodies = fields[first::2], fields[first + 1 :: 2]
        if numbers and (numbers[0] <= self._part.after.seq or numbers[-1] > self._part.end.seq):
            numbers, jobs, bodies = self._within(numbers, jobs, bodies)
        at, dense, count = int(fields[1]), self.dense, len(numbers)
        dense["seq"] += numbers
        dense["at"] += [at] * count
        dense["by"] += [fields[3].decode()] * count
        dense["queue"] += [self._part.queue] * count
        dense["left_out"] += [False] * count
        dense["job"] += [job.decode() or None for job in jobs]
        self._take_bodies(at, jobs, bodies)

    def _within(
        self, numbers: Sequence[int], jobs: list[bytes], bodies: list[bytes]
    ) -> tuple[list[int], list[bytes], list[bytes]]:
        inside = [place for place, seq in enumerate(numbers) if self._part.after.seq < seq <= self._part.end.seq]
        return [numbers[n] for n in inside], [jobs[n] for n in inside], [bodies[n] for n in inside]

    def _take_bodies(self, at: int, jobs: list[bytes], bodies: list[bytes]) -> None:
        """The loop over all events: one step must cost two microseconds at most."""
        dense, data, head_of = self.dense, self.sparse["data"], self._heads.read
        types, lives, runs, tasks = dense["type"], dense["life"], dense["run"], dense["task"]
        statuses, dues, created, counts = dense["status"], dense["due"], dense["created"], dense["failures"]
        attempts = dense["attempts"]
        row = self.rows
        for job, body in zip(jobs, bodies, strict=True):
            if not job:
                self._take_other(row, body)
                row += 1
                continue
            plain = body[0] in ADDED
            kind = PLAIN if plain else TYPES[body[0]]
            head, end = head_of(body, 0 if plain else 1)
            types.append(kind)
            lives.append(head.life)
            runs.append(0)
            tasks.append(head.task)
            dues.append(head.due)
            created.append(head.created)
            counts.append(0)
            attempts.append(ONCE.get(kind, 0))
            statuses.append(IMPLIED.get(kind) or ("scheduled" if head.due > at else "waiting"))
            if head.options:
                self._take_options(row, head.options)
            if plain:
                data[row] = body[end:].decode()
            elif end < len(body):
                self._take_details(row, body[end:])
            row += 1
        self.rows = row

    def _take_other(self, row: int, body: bytes) -> None:
        """An event of the whole queue."""
        for name in ("life", "run", "task", "status", "due", "created", "failures", "attempts"):
            self.dense[name].append(None)
        self.dense["type"].append(TYPES[body[0]])
        details: dict[str, Any] = record.unpack(body[1:]) if len(body) > 1 else {}
        if "worker" in details:
            self.sparse["worker"][row] = details.pop("worker")
        self._take_rest(row, details)

    def _take_options(self, row: int, options: Mapping[str, Any]) -> None:
        for name in ("name", "meta", "write"):
            if value := options.get(name):
                self.sparse[name][row] = value

    def _take_details(self, row: int, packed: bytes) -> None:
        details = self._details.get(packed)
        if details is None:
            details = record.unpack(packed)
            if len(packed) < 100:
                self._details[packed] = details
        sparse, rest = self.sparse, dict[str, Any]()
        for name, value in details.items():
            if name == "lease":
                self._take_lease(row, value, details)
            elif name in AS_TOLD or name in COUNTS:
                sparse[name][row] = value
            elif name == "error":
                error_columns(sparse, row, value.encode())
            elif name == "due":
                sparse["next_run" if "was" in details else "due"][row] = value
            elif name == "was":
                sparse["due"][row] = value
            elif name == "next":
                sparse["next_run"][row] = value
            elif name == "worker":
                sparse["worker"][row] = value
            else:
                rest[name] = value
        if rest:
            self._take_rest(row, rest)

    def _take_lease(self, row: int, text: str, details: Mapping[str, Any]) -> None:
        lease = self._leases.get(text)
        if lease is None:
            lease = self._leases[text] = Lease.read(text.encode())
        sparse = self.sparse
        sparse["worker"][row] = lease.worker
        sparse["started"][row] = lease.started
        if "began" not in details:
            sparse["began"][row] = lease.started
        if "run" not in details:
            sparse["run"][row] = 1

    def _take_rest(self, row: int, rest: Mapping[str, Any]) -> None:
        if rest:
            self.sparse["details"][row] = encode(rest).decode()

    def batch(self) -> ArrowBatch:
        """The rows so far."""
        # Where nothing is told of them, these counts are all 0, or null where there is no job.
        self.dense["stalls"] = self.dense["timeouts"] = self.dense["failures"]
        return super().batch()
