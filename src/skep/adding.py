"""Adds: one job, or any number of them, one trip after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from skep import lifecycle, views
from skep.core.call import Call, Flow
from skep.core.codec import encode, encode_many
from skep.core.ids import new_ids
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.options import JobOptions, JobSpec
from skep.core.terms import Terms
from skep.drafts import Template
from skep.errors import InvalidOption, PartlyAdded, ServerError, ServerUnavailable, SkepError

T = TypeVar("T")

MOST_IN_A_TRIP = 500
MOST_DRAFTS_IN_A_TRIP = 60
"""Jobs that are said each by itself cost the server about 15 us each, and no call is to hold it for 2 ms."""
MOST_BYTES_IN_A_TRIP = 256 << 10
MET = ("updated", "ignored")
AROUND_DATA = 64
"""Bytes of a trip that are no data: the id of each job, and what stands around it."""

Shaped: TypeAlias = tuple[Template, bytes]
Prepare: TypeAlias = Callable[[list[Any], int], "list[bytes] | list[Shaped]"]
"""Makes items, of which the first has this index, into data of plain jobs, or into jobs said each by itself."""


class Shaper:
    """Makes jobs of what callers say, as the queue or the task says where they say nothing."""

    def __init__(self, layers: tuple[Terms, ...], max_payload: int) -> None:
        self.layers = layers
        self.max_payload = max_payload
        self.template = Template.of(*layers)

    def saying(self, options: Mapping[str, Any]) -> Shaper:
        """The same, where so much is said of all."""
        return Shaper((JobOptions(**options).terms, *self.layers), self.max_payload) if options else self

    def one(self, data: Any, options: Mapping[str, Any]) -> Shaped:
        """A job of this data, or of a spec, which has the last word."""
        said = self.layers
        if options:
            said = (JobOptions(**options).terms, *said)
        if isinstance(data, JobSpec):
            said, data = (data.terms, *said), data.data
        template = self.template if said is self.layers else Template.of(*said)
        return template, encode(data, limit=self.max_payload)

    def many(self, batch: list[Any], first: int) -> list[bytes] | list[Shaped]:
        """Jobs of many items, each data or a spec."""
        if JobSpec not in set(map(type, batch)):
            return self.alike(encode_many(batch, first, self.max_payload))
        return [self._one_of_many(item, f"items[{place}]") for place, item in enumerate(batch, first)]

    def _one_of_many(self, item: Any, place: str) -> Shaped:
        if not isinstance(item, JobSpec):
            return self.template, encode(item, place, self.max_payload)
        try:
            template = Template.of(item.terms, *self.layers)
        except SkepError as error:
            error.args = (f"{place}: {error}",)
            raise
        return template, encode(item.data, place, self.max_payload)

    def alike(self, texts: list[bytes]) -> list[bytes] | list[Shaped]:
        """Jobs of which nothing else is said of one than of the other."""
        return texts if self.template.is_plain else [(self.template, text) for text in texts]


class AddedOne(NamedTuple):
    """What became of one add, and the job as it stands where the add did not make it."""

    id: str
    template: Template
    data: bytes
    outcome: str
    life: int
    record: JobRecord | None = None


def add(keys: Keys, template: Template, data: bytes) -> Flow[AddedOne]:
    """One job. Where it met one with its id, that is looked at too."""
    if template.is_plain:
        id = new_ids(1)[0]
        try:
            yield lifecycle.add(keys, template.like, [(id, data)])
        except ServerUnavailable as error:
            raise error.told_as(lambda _: AddedOne(id, template, data, "added", 0)) from error
        return AddedOne(id, template, data, "added", 0)
    template = yield from _resolved(keys, template)
    draft = template.draft(data)
    try:
        [added] = yield lifecycle.upsert(keys, [draft])
    except ServerUnavailable as error:
        raise error.told_as(lambda told: AddedOne(draft.id, template, data, told[0].outcome, told[0].life)) from error
    record = (yield from met(keys, draft.id)) if added.outcome in MET else None
    return AddedOne(draft.id, template, data, added.outcome, added.life, record)


def _resolved(keys: Keys, template: Template) -> Flow[Template]:
    """A cron series begins at a due time by the server's clock."""
    return template.at((yield views.now(keys))) if template.is_cron else template


def met(keys: Keys, id: str) -> Flow[JobRecord | None]:
    """The job that an add met. The add is done: that the server cannot tell more now is no failure of it."""
    try:
        found: list[JobRecord | None] = yield views.look(keys, [id])
    except ServerError:
        return None
    return found[0]


@dataclass(frozen=True, slots=True)
class Added:
    """What became of many adds: how many are new, changed a job, wait behind a run of their id, or changed nothing.

    `ids` are those of all items in their order, if they were asked for.
    """

    count: int = 0
    updated: int = 0
    blocked: int = 0
    ignored: int = 0
    ids: list[str] | None = field(default=None, repr=False)


class _Trip(NamedTuple):
    ids: list[str]
    call: Call[list[lifecycle.Added]]
    is_plain: bool


class _Tally:
    """Counts the outcomes of adds as their trips are answered."""

    def __init__(self, *, ids: bool) -> None:
        self.settled = 0
        self._counts = {"added": 0, "updated": 0, "blocked": 0, "ignored": 0}
        self._ids: list[str] | None = [] if ids else None

    def take(self, trip: _Trip, outcomes: Sequence[lifecycle.Added]) -> None:
        self.settled += len(trip.ids)
        if self._ids is not None:
            self._ids += trip.ids
        if trip.is_plain:
            self._counts["added"] += len(trip.ids)
        else:
            for each in outcomes:
                self._counts[each.outcome] += 1

    def refused(self, trip: _Trip, error: SkepError) -> SkepError:
        """What is raised where a trip ended like this: the error itself, if there is no more to tell."""
        unknown = 0
        if isinstance(error, ServerUnavailable) and error.maybe_done:
            unknown, error = len(trip.ids), error.told_as(partial(_told_of, trip))
        return PartlyAdded(self.settled, unknown, error) if self.settled or unknown else error

    def told(self) -> Added:
        counts = self._counts
        return Added(counts["added"], counts["updated"], counts["blocked"], counts["ignored"], self._ids)


def _told_of(trip: _Trip, outcomes: Sequence[lifecycle.Added]) -> Added:
    """What became of the items of one trip."""
    tally = _Tally(ids=True)
    tally.take(trip, outcomes)
    return tally.told()


def add_many(keys: Keys, template: Template, prepare: Prepare, items: Iterable[Any], *, ids: bool) -> Flow[Added]:
    """Any number of jobs. Trips go one after another, so that jobs stay in order, and the first refusal ends it."""
    if template.id is not None:
        raise InvalidOption(
            "id", template.id, "effect in an add of one job; of many each takes its own, as JobSpec(data, id=...)"
        )
    tally, batches = _Tally(ids=ids), _batches(items)
    while True:
        try:
            batch = next(batches, None)
            prepared = prepare(batch, tally.settled) if batch else None
        except Exception as error:  # whatever the items raise: what was added before is told with it
            if tally.settled == 0:
                raise
            raise PartlyAdded(tally.settled, 0, error) from error
        if prepared is None:
            return tally.told()
        yield from _send(tally, (yield from _trips(keys, template, prepared)))


def add_shaped(keys: Keys, shaped: Sequence[Shaped]) -> Flow[Added]:
    """Jobs that are said each by itself, in the same way. All their ids are told."""
    tally = _Tally(ids=True)
    for batch in _batches(shaped):
        yield from _send(tally, (yield from _trips_of_drafts(keys, batch)))
    return tally.told()


def _send(tally: _Tally, trips: Iterable[_Trip]) -> Flow[None]:
    for trip in trips:
        try:
            answer = yield trip.call
        except SkepError as error:
            told = tally.refused(trip, error)
            if told is error:
                raise
            raise told from error
        tally.take(trip, answer)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, MOST_IN_A_TRIP)):
        yield batch


def _trips(keys: Keys, template: Template, prepared: list[bytes] | list[Shaped]) -> Flow[list[_Trip]]:
    """A batch as calls of so many bytes at most: one, for data of the usual size."""
    plain = [each for each in prepared if isinstance(each, bytes)]
    if plain:
        return [_plain_trip(keys, template, part) for part in by_size(plain, len)]
    return (yield from _trips_of_drafts(keys, [each for each in prepared if not isinstance(each, bytes)]))


def _trips_of_drafts(keys: Keys, shaped: Iterable[Shaped]) -> Flow[list[_Trip]]:
    drafts: list[lifecycle.Draft] = []
    now: int | None = None
    for each, data in shaped:
        if each.is_cron and now is None:
            now = yield views.now(keys)
        drafts.append((each if now is None else each.at(now)).draft(data))
    few = [drafts[first : first + MOST_DRAFTS_IN_A_TRIP] for first in range(0, len(drafts), MOST_DRAFTS_IN_A_TRIP)]
    parts = [part for some in few for part in by_size(some, _size)]
    return [_Trip([draft.id for draft in part], lifecycle.upsert(keys, part), False) for part in parts]


def _plain_trip(keys: Keys, template: Template, raws: list[bytes]) -> _Trip:
    ids = new_ids(len(raws))
    return _Trip(ids, lifecycle.add(keys, template.like, list(zip(ids, raws, strict=True))), True)


def _size(draft: lifecycle.Draft) -> int:
    return len(draft.data) + len(draft.id) + AROUND_DATA


def by_size(items: list[T], size: Callable[[T], int]) -> list[list[T]]:
    """The items in order, in parts that fit into a trip, at least one in each."""
    if sum(map(size, items)) <= MOST_BYTES_IN_A_TRIP:
        return [items]
    parts: list[list[T]] = []
    room = 0
    for item in items:
        room -= size(item)
        if room < 0 or not parts:
            parts.append([])
            room = MOST_BYTES_IN_A_TRIP - size(item)
        parts[-1].append(item)
    return parts
