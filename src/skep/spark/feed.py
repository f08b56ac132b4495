"""Slices of the event streams: where they end, and reading one exactly or not at all.

Plain Python: what Spark calls stands in `events.py`. The number of a stream's last event is known from its last entry,
so that an offset costs one look. A slice is read from the last event before it, which is already done with, and up to
its last one: where either is another one than it was, the server has forgotten something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skep import views
from skep.core.keys import Keys
from skep.errors import EventsTrimmed, HistoryForked, HistoryOff
from skep.store.sync import Store
from skep.views import Mark

Offsets = dict[str, dict[str, int | None]]
"""By queue the last event that was read: its number `seq` and its time `at` in ms (None: nobody knows)."""

EVENTS_IN_A_SLICE = 250_000
ENTRIES_AT_FIRST, ENTRIES_AT_MOST = 8, 1000
BYTES_IN_A_TRIP = 262_144


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of one queue behind one, up to and including another: what one Spark task reads."""

    queue: str
    after: Mark
    end: Mark
    prefix: str = "skep"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What there is to read of a queue: behind the one event, up to the other."""

    after: Mark
    end: Mark
    begun: bool

    def __len__(self) -> int:
        return max(0, self.end.seq - self.after.seq)


def mark(offset: Mapping[str, int | None]) -> Mark:
    """An offset as a place in the stream."""
    return Mark(offset["seq"] or 0, offset["at"])


def offset(place: Mark) -> dict[str, int | None]:
    """A place in the stream as an offset."""
    return {"seq": place.seq, "at": place.at}


@dataclass(frozen=True, slots=True)
class Feed:
    """The event streams of some queues of one server."""

    store: Store
    queues: Sequence[str]
    prefix: str = "skep"

    def ends(self, start: Offsets, *, room: int | None = None, until: Offsets | None = None) -> Offsets:
        """Where to read to from `start`: so many events in all, or a few more, up to what there was at `until`.

        A queue that `start` does not name is read from its oldest event on. Offsets never go backwards.
        """
        backlogs = {queue: self._backlog(queue, start.get(queue), until) for queue in sorted(self.queues)}
        found: Offsets = {}
        rooms = _shared({queue: len(backlog) for queue, backlog in backlogs.items()}, room)
        for queue, backlog in backlogs.items():
            if rooms[queue]:
                found[queue] = offset(self._end(queue, backlog, rooms[queue]))
            elif backlog.begun:
                found[queue] = start[queue]
        return found

    def _backlog(self, queue: str, before: Mapping[str, int | None] | None, until: Offsets | None) -> Backlog:
        begun = before is not None
        after = mark(before) if before is not None else Mark(0, None)
        edges = self.store.send(views.edges(Keys(queue, self.prefix), [after.seq] if begun else []))
        if edges.history == "none":
            raise HistoryOff(
                f"queue {queue!r} keeps no events (its history is 'none'): set history='all' and begin anew"
            )
        if begun:
            _compare(queue, after, edges)
        else:
            after = Mark(max(edges.oldest - 1, 0), None)
        end = edges.last
        if until is not None:
            end = mark(until[queue]) if queue in until else after
        return Backlog(after, end, begun)

    def _end(self, queue: str, backlog: Backlog, room: int) -> Mark:
        """The end of the entry that holds the last event there is room for."""
        if room >= len(backlog):
            return backlog.end
        number = backlog.after.seq + room
        [found] = self.store.send(views.edges(Keys(queue, self.prefix), [number])).marks
        if found is None:
            raise EventsTrimmed(queue, backlog.after.seq + 1, number)
        return found if found.seq < backlog.end.seq else backlog.end

    def slices(self, start: Offsets, end: Offsets) -> list[Slice]:
        """What lies between two offsets, in slices that tasks read side by side."""
        found: list[Slice] = []
        for queue, last in end.items():
            until = mark(last)
            if queue in start:
                after = mark(start[queue])
            else:
                edges = self.store.send(views.edges(Keys(queue, self.prefix)))
                after = Mark(max(min(edges.oldest - 1, until.seq), 0), None)
                if edges.last.seq < until.seq:
                    raise _forgotten(queue, until.seq, edges.last.seq)
            found += _cut(Slice(queue, after, until, self.prefix))
        return found


def _shared(wanted: Mapping[str, int], room: int | None) -> dict[str, int]:
    """Who wants little gets it; what is left is shared alike."""
    shares = dict(wanted)
    if room is None:
        return shares
    left = len(wanted)
    for queue in sorted(wanted, key=lambda name: wanted[name]):
        # One event at least, lest a queue is passed over for ever.
        shares[queue] = min(wanted[queue], max(1, room // left))
        room, left = max(0, room - shares[queue]), left - 1
    return shares


def _cut(whole: Slice) -> Iterator[Slice]:
    """A slice in parts. Within it, the time of an event is not known: only its own ends can be compared."""
    after = whole.after
    while whole.end.seq - after.seq > EVENTS_IN_A_SLICE * 5 // 4:
        end = Mark(after.seq + EVENTS_IN_A_SLICE, None)
        yield replace(whole, after=after, end=end)
        after = end
    if whole.end.seq > after.seq:
        yield replace(whole, after=after)


def _forgotten(queue: str, seq: int, last: int) -> HistoryForked:
    return HistoryForked(
        f"queue {queue!r}: event {seq:,} was there, and the last one is {last:,} now: the server lost what it had"
        " acknowledged; begin anew, with a new checkpoint"
    )


def _replaced(queue: str, seq: int) -> HistoryForked:
    return HistoryForked(
        f"queue {queue!r}: event {seq:,} is another one than it was: the server lost what it had acknowledged, and"
        " went on from there; begin anew, with a new checkpoint"
    )


def _compare(queue: str, before: Mark, edges: views.Edges) -> None:
    """Whether a stream still has what was read of it."""
    if edges.last.seq < before.seq:
        raise _forgotten(queue, before.seq, edges.last.seq)
    found = edges.marks[0]
    if found is not None and before.at not in (None, found.at) and before.seq:
        raise _replaced(queue, before.seq)
    if edges.oldest > before.seq + 1:
        raise EventsTrimmed(queue, before.seq + 1, edges.oldest - 1)


Entry = tuple[bytes, list[bytes]]


def read(store: Store, part: Slice) -> Iterator[list[Entry]]:
    """The entries with the events of a slice, in order, none missing, else it fails. Outer ones hold others too."""
    keys = Keys(part.queue, part.prefix)
    # It begins with the last event that is done with, if that can be known again.
    after, at = max(part.after.seq - 1, 0), part.after.seq
    count = ENTRIES_AT_FIRST
    while at < part.end.seq:
        found = store.send(views.feed(keys, after=after, count=count, size=BYTES_IN_A_TRIP)).entries
        if not found:
            raise _forgotten(part.queue, part.end.seq, at)
        # The server reads as many before it looks at their size.
        count = min(2 * count, ENTRIES_AT_MOST) if len(found) == count else len(found) + 1
        wanted: list[Entry] = []
        for entry in found:
            first, last = numbers(entry)
            _check(part, entry, first, last, at)
            if last > at:
                wanted.append(entry)
                at = last
            if at >= part.end.seq:
                break
        after = at
        if wanted:
            yield wanted


def _check(part: Slice, entry: Entry, first: int, last: int, at: int) -> None:
    if first > at + 1:
        raise EventsTrimmed(part.queue, at + 1, first - 1)
    for end in (part.after, part.end):
        if end.seq and end.at is not None and first <= end.seq <= last and int(entry[1][1]) != end.at:
            raise _replaced(part.queue, end.seq)


def numbers(entry: Entry) -> tuple[int, int]:
    """The first and the last number that an entry stands for, whether or not their events were left out."""
    last, fields = int(entry[0].partition(b"-")[0]), entry[1]
    if is_gappy(fields):
        return int(fields[5]), last
    return last - (len(fields) - 4) // 2 + 1, last


def is_gappy(fields: Sequence[bytes]) -> bool:
    """Whether events were left out before or within an entry. A job may be called `from`: behind it stands no digit."""
    return len(fields) > 4 and fields[4] == b"from" and fields[5][:1].isdigit()
