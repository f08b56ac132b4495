"""Rows in, exactly once: each task stages its rows under a token of its own, one commit decides, then they are moved.

Plain Python: what Spark calls stands in `source.py`. A task that is repeated or speculated stages under another token,
and only the tokens that the commit names are ever seen; the others go by themselves after `stagingTtl`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from skep import lifecycle, views
from skep.core.codec import encode
from skep.core.ids import new_ids
from skep.core.keys import Keys
from skep.core.options import JobOptions
from skep.drafts import Template
from skep.errors import SkepError
from skep.store.sync import Store
from skep.views import Written

ROWS_IN_A_TRIP = 500
BYTES_IN_A_TRIP = 262_144
REMEMBERED = 30 * 86_400_000
OPTION = "skep_"
BAD_ROWS_TOLD = 20

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What every task of a write must know."""

    queue: str
    write: str
    prefix: str = "skep"
    task: str | None = None
    data_column: str | None = None
    ttl: int = 86_400_000


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a job, and why."""

    row: str
    why: str


@dataclass(frozen=True, slots=True)
class Staged:
    """What one task has staged: its token tells the commit."""

    token: str
    rows: int
    bad: int = 0
    examples: list[BadRow] = field(default_factory=list[BadRow])


class BadRows(SkepError):
    """Rows of a write cannot be jobs, and `badRows` is "fail": nothing of it was added."""

    def __init__(self, count: int, examples: Sequence[BadRow]) -> None:
        told = "; ".join(f"{each.row}: {each.why}" for each in examples[:BAD_ROWS_TOLD])
        super().__init__(
            f"{count:,} rows cannot be jobs, so nothing was added (badRows='skip' leaves them out): {told}"
        )
        self.count = count
        self.examples = list(examples)


class Stager:
    """Takes the rows of one task to the server. Nothing of them shows before the commit."""

    def __init__(self, store: Store, plan: WritePlan) -> None:
        self._store = store
        self._plan = plan
        self._keys = Keys(plan.queue, plan.prefix)
        self._token = secrets.token_hex(8)
        self._base = JobOptions(task=plan.task).terms if plan.task else {}
        self._rows = 0
        self._bad: list[BadRow] = []
        self._bad_count = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Stages rows: columns are data, those that begin with `skep_` are options."""
        rest = iter(rows)
        while chunk := list(islice(rest, ROWS_IN_A_TRIP)):
            if any(name.startswith(OPTION) for name in chunk[0]):
                self._stage_each(chunk)
            else:
                self._stage_alike(chunk)

    def finish(self) -> Staged:
        """What the commit must know of this task."""
        return Staged(self._token, self._rows, self._bad_count, self._bad)

    def _stage_alike(self, chunk: list[Row]) -> None:
        template = Template.of({**self._base, "write": self._plan.write})
        for part in _by_size(self._encoded(chunk)):
            ids = new_ids(len(part))
            jobs = list(zip(ids, part, strict=True))
            self._store.send(
                lifecycle.stage(self._keys, self._token, ttl=self._plan.ttl, like=template.like, jobs=jobs)
            )
            self._rows += len(part)

    def _stage_each(self, chunk: list[Row]) -> None:
        drafts: list[lifecycle.Draft] = []
        for row in chunk:
            try:
                drafts.append(self._draft(row))
            except (SkepError, TypeError) as error:
                self._refuse(row, error)
        if drafts:
            self._store.send(lifecycle.stage_each(self._keys, self._token, ttl=self._plan.ttl, drafts=drafts))
            self._rows += len(drafts)

    def _draft(self, row: Row) -> lifecycle.Draft:
        options = {
            name.removeprefix(OPTION): value
            for name, value in row.items()
            if name.startswith(OPTION) and value is not None
        }
        data = {name: value for name, value in row.items() if not name.startswith(OPTION)}
        terms = JobOptions(**options).terms
        template = Template.of({**self._base, "write": self._plan.write, **terms})
        return template.draft(self._encode(data))

    def _encode(self, row: Row) -> bytes:
        column = self._plan.data_column
        return encode(row[column] if column else row)

    def _encoded(self, chunk: list[Row]) -> Iterator[bytes]:
        for row in chunk:
            try:
                yield self._encode(row)
            except SkepError as error:
                self._refuse(row, error)

    def _refuse(self, row: Row, error: Exception) -> None:
        self._bad_count += 1
        if len(self._bad) < BAD_ROWS_TOLD:
            self._bad.append(BadRow(repr(row)[:200], str(error)))


def _by_size(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for item in items:
        if part and size + len(item) > BYTES_IN_A_TRIP:
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        yield part


def decide(store: Store, plan: WritePlan, staged: Sequence[Staged], *, skip_bad: bool) -> bool:
    """The write takes place, whole. False: it was decided before, and nothing is done."""
    bad = sum(each.bad for each in staged)
    if bad and not skip_bad:
        raise BadRows(bad, [example for each in staged for example in each.examples])
    tokens = [each.token for each in staged if each.rows]
    return store.send(lifecycle.decide(Keys(plan.queue, plan.prefix), plan.write, tokens, remember=REMEMBERED))


def move_all(store: Store, plan: WritePlan) -> Written:
    """Moves decided rows until none of this write is left; workers do the same in passing."""
    keys = Keys(plan.queue, plan.prefix)
    while True:
        written = store.send(views.written(keys, plan.write))
        if written is None or written.done:
            return written or Written(0, 0, 0, 0, 0, 0, done=True)
        for _ in range(64):
            if store.send(lifecycle.move(keys)) is None:
                break
