"""Rows in, exactly once: each task stages its rows under a token of its own, one commit decides, then they are moved.

Plain Python: what Spark calls stands in `writer.py`. A task that is repeated or speculated stages under another token,
and only the tokens that the commit names are ever seen; the others go by themselves after `stagingTtl`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from skep import lifecycle, views
from skep.adding import by_size
from skep.core.ids import new_ids
from skep.core.keys import Keys
from skep.core.options import JobOptions
from skep.core.terms import Terms
from skep.drafts import Template
from skep.errors import SkepError
from skep.lifecycle import REMEMBERED, Draft
from skep.spark.rows import BAD_ROWS_TOLD, BadRow, BadRowsOfTask, Drafter, Encoder
from skep.spark.schema import ArrowBatch
from skep.store.sync import Store
from skep.views import Written

ROWS_IN_A_TRIP = 500
# Each move is a millisecond of the server's time, and those of one trip follow one another.
MOVES_IN_A_TRIP = 4
TRIPS_BETWEEN_LOOKS = 16
A_DAY = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What every task of a write must know. `stream`: the query and the number of its batch that the write is."""

    queue: str
    write: str
    prefix: str = "skep"
    task: str | None = None
    data_column: str | None = None
    ttl: int = A_DAY
    stream: tuple[str, int] | None = None

    @property
    def keys(self) -> Keys:
        """The keys of its queue."""
        return Keys(self.queue, self.prefix)

    @property
    def terms(self) -> Terms:
        """What is said of all its jobs."""
        return {"write": self.write, **(JobOptions(task=self.task).terms if self.task else {})}


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
        self._token = secrets.token_hex(8)
        self._template = Template.of(plan.terms)
        self._bad = BadRowsOfTask()
        self._rows = 0
        self._encoder: Encoder | None = None
        self._drafter: Drafter | None = None

    def add(self, batch: ArrowBatch) -> None:
        """Stages rows. All batches have the same columns."""
        encoder = self._encoder = self._encoder or Encoder(batch.schema, self._plan.data_column)
        drafter = self._drafter = self._drafter or Drafter(batch.schema, self._plan.terms)
        for first in range(0, batch.num_rows, ROWS_IN_A_TRIP):
            chunk = batch.slice(first, ROWS_IN_A_TRIP)
            texts = encoder.encode(chunk, self._bad)
            if drafter.is_needed:
                self._stage_each(drafter.drafts(chunk, texts, self._now, self._bad))
            else:
                self._stage_alike([text for text in texts if text is not None])

    def finish(self) -> Staged:
        """What the commit must know of this task."""
        return Staged(self._token, self._rows, self._bad.count, self._bad.examples)

    def _stage_alike(self, texts: list[bytes]) -> None:
        for part in by_size(texts, len) if texts else []:
            jobs = list(zip(new_ids(len(part)), part, strict=True))
            like, ttl = self._template.like, self._plan.ttl
            self._store.send(lifecycle.stage(self._plan.keys, self._token, ttl=ttl, like=like, jobs=jobs))
            self._rows += len(part)

    def _stage_each(self, drafts: list[Draft]) -> None:
        for part in by_size(drafts, _size) if drafts else []:
            self._store.send(lifecycle.stage_each(self._plan.keys, self._token, ttl=self._plan.ttl, drafts=part))
            self._rows += len(part)

    def _now(self) -> int:
        return self._store.send(views.now(self._plan.keys))


def _size(draft: Draft) -> int:
    return len(draft.data) + len(draft.id)


def check_bad(staged: Sequence[Staged]) -> None:
    """Refuses a write of which a row is bad."""
    if bad := sum(each.bad for each in staged):
        raise BadRows(bad, [example for each in staged for example in each.examples])


def decide(store: Store, plan: WritePlan, staged: Sequence[Staged]) -> bool:
    """The write takes place, whole. False: it was decided before, and nothing is done."""
    tokens = [each.token for each in staged if each.rows]
    # Of a stream the query's last batch is remembered; that of a single batch tells only how it went.
    remember = A_DAY if plan.stream else REMEMBERED
    return store.send(lifecycle.decide(plan.keys, plan.write, tokens, remember=remember, stream=plan.stream))


def move_all(store: Store, plan: WritePlan) -> Written:
    """Moves decided rows until none of this write is left; workers do the same in passing."""
    while True:
        written = store.send(views.written(plan.keys, plan.write))
        if written is None or written.done:
            return written or Written(0, 0, 0, 0, 0, 0, done=True)
        for _ in range(TRIPS_BETWEEN_LOOKS):
            moved = store.send_many([lifecycle.move(plan.keys)] * MOVES_IN_A_TRIP)
            for each in moved:
                if isinstance(each, Exception):
                    raise each
            if None in moved:
                break
