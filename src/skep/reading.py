"""Where a reader of events stands, and whether what it is given goes on from there. Pure: `listening.py` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from skep import lifecycle, views
from skep.core.call import Flow
from skep.core.events import RawEvent, first_number, read_entry
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.limits import check_label
from skep.core.states import FINISHED
from skep.errors import EventsTrimmed, HistoryForked, HistoryOff, InvalidOption
from skep.event import Event
from skep.views import Edges, Mark

Since: TypeAlias = int | Event | None
"""Behind which event to read: its number, the event itself, 0 for all that are kept, None for those to come."""

WAIT = 5.0
"""Seconds for which a reader waits for more, before it looks whether all is as it was."""


def begin(keys: Keys, since: Since) -> Flow[Mark]:
    """Where to read on from."""
    if since is None or since == 0:
        edges = yield views.edges(keys)
        _demand_history(keys, edges)
        return edges.last if since is None else Mark(max(edges.oldest - 1, 0), None)
    if isinstance(since, Event):
        place = Mark(since.seq, round(since.at.timestamp() * 1000))
    elif since < 0:
        raise InvalidOption("since", since, "the number of an event, an event, 0 for all, or None: from now")
    else:
        place = Mark(since, None)
    return (yield from _go_on(keys, place))


def _go_on(keys: Keys, place: Mark) -> Flow[Mark]:
    edges = yield views.edges(keys, [place.seq])
    _compare(keys, place, edges)
    if edges.oldest > place.seq + 1:
        raise EventsTrimmed(keys.name, place.seq + 1, edges.oldest - 1)
    return place


def resume(keys: Keys, reader: str | None) -> Flow[Mark]:
    """Where a reader with a name goes on; a new one begins now, and holds back trimming from now on."""
    if reader is None:
        return (yield from begin(keys, None))
    name = check_label("reader", reader)
    known: Mark | None = (yield views.readers(keys)).get(name)
    if known is not None:
        return (yield from _go_on(keys, known))
    place = yield from begin(keys, None)
    yield lifecycle.reader(keys, name, place.seq, at=place.at, begins=True)
    return place


def more(keys: Keys, place: Mark) -> Flow[tuple[Mark, list[RawEvent]]]:
    """Some events behind a place, and the place behind them. None are missing, and those before are what they were."""
    entries = (yield views.feed(keys, after=place.seq)).entries
    # Asked behind the feed: where the server forgot something before or in between, it shows.
    _compare(keys, place, (yield views.edges(keys, [place.seq])))
    found: list[RawEvent] = []
    after = place.seq
    for number, fields in entries:
        first = first_number(number, fields)
        if first > place.seq + 1:
            raise EventsTrimmed(keys.name, place.seq + 1, first - 1)
        place = Mark(int(number.partition(b"-")[0]), int(fields[1]))
        found += (event for event in read_entry(number, fields) if event.seq > after)
    return place, found


def _compare(keys: Keys, place: Mark, edges: Edges) -> None:
    _demand_history(keys, edges)
    if edges.last.seq < place.seq:
        raise HistoryForked(
            f"queue {keys.name!r}: event {place.seq:,} was there, and the last one is {edges.last.seq:,} now:"
            " the server lost what it had acknowledged; begin anew with since=0, or from now"
        )
    [found] = edges.marks
    if found is not None and place.at is not None and found.at != place.at:
        raise HistoryForked(
            f"queue {keys.name!r}: event {place.seq:,} is another one than it was: the server lost what it had"
            " acknowledged, and went on from there; begin anew with since=0, or from now"
        )


def _demand_history(keys: Keys, edges: Edges) -> None:
    if edges.history == "none":
        raise HistoryOff(f"queue {keys.name!r} keeps no events: queue.configure(history='all') makes it keep them")


class Story:
    """Which events are of a life: up to its end, and merged into another one, of that."""

    def __init__(self, id: str, life: int) -> None:
        self.id = id
        self.life = life
        self.is_over = False

    def of(self, events: Iterable[RawEvent]) -> Iterator[RawEvent]:
        """Those that belong to it, up to its end."""
        for event in events:
            if self._has(event):
                yield event
            if self.is_over:
                return

    def _has(self, event: RawEvent) -> bool:
        if event.type == "dropped":
            self.is_over = True
        if event.job != self.id or event.life != self.life:
            return False
        if event.type == "merged":
            self.life = event.details["into"]
        self.is_over = event.type in FINISHED or event.type == "removed"
        return True


def birth(keys: Keys, id: str, life: int) -> Flow[Mark]:
    """A place before the first event of a life, as far as they are kept."""
    edges = yield views.edges(keys)
    _demand_history(keys, edges)
    first = life or (yield from _first_since(keys, edges, (yield from _created(keys, id))))
    # With history="endings" the entry that will stand for its birth is still to come.
    return Mark(min(max(first, edges.oldest, 1) - 1, edges.last.seq), None)


def _created(keys: Keys, id: str) -> Flow[int]:
    """When the first life of an id began: of a generated id, whose life has no number."""
    record: JobRecord | None = (yield views.look(keys, [id]))[0]
    if record is None:
        return 0
    if record.head.life == 0:
        return record.head.created
    last = record.known.previous
    return last.created if last is not None and last.life == 0 else 0


def _first_since(keys: Keys, edges: Edges, at: int) -> Flow[int]:
    """The number of an event at this time, or of the first one behind it."""
    low, high = edges.oldest, edges.last.seq
    while low < high and at:
        middle = (low + high) // 2
        [found] = (yield views.edges(keys, [middle])).marks
        if found is None or found.at < at:
            low = middle + 1 if found is None else found.seq + 1
        else:
            high = middle
    return low


def is_over(keys: Keys, story: Story) -> Flow[bool]:
    """Whether its life is over by now, whatever is told of that."""
    record: JobRecord | None = (yield views.look(keys, [story.id]))[0]
    if record is None:
        return True
    if record.head.life == story.life:
        return record.status in FINISHED
    return record.twin is None or record.twin.life != story.life


def to_wait_for(keys: Keys, place: Mark) -> dict[str, str]:
    """What a reader that has read all waits for, as transports are told."""
    return {keys.events: f"{place.seq}-0"}
