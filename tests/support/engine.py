"""The scripts without a client: calls with a given clock, sent once or twice, and a look at all they left."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ResponseError

from skep import lifecycle, scripts, views
from skep.core.call import Arg, Call, Script
from skep.core.events import RawEvent, read_entry
from skep.core.job import JobRecord
from skep.core.keys import NAMES, Keys
from skep.core.record import pack
from skep.testing import Server

T = TypeVar("T")
Mutation = Callable[[str, str], str]
"""From a script's name and its source: the source that is sent in its place."""

LEASE = 30_000
# Lanes are born in the far future, so that none is ever too old: their age has tests of its own.
BIRTH = 9_999_999_999

# All keys of a queue as DUMP gives them, and what stands in those that a comparison looks into.
PHOTO = """
--@use place
local dumps, found = {}, {}
for i = 1, #KEYS do dumps[i] = server('DUMP', KEYS[i]) end
for _, id in ipairs(server('HKEYS', key.jobs)) do
  local status = place.status(id)
  local more = {
    active = key.active, held = key.held, succeeded = key.succeeded, failed = key.failed, cancelled = key.cancelled,
  }
  local twin = server('HGET', key.blocked, id)
  found[#found + 1] = id
  found[#found + 1] = {
    server('HGET', key.jobs, id), status, more[status] and server('HGET', more[status], id) or false,
    server('HGET', key.states, id), server('HGET', key.progress, id), server('HGET', key.stops, id),
    twin and cmsgpack.unpack(twin)[1],
  }
end
local lists = {}
for priority = 10, 60, 10 do lists[#lists + 1] = server('LRANGE', place.lists[priority], 0, -1) end
return { dumps, found, lists, server('HGETALL', key.skips), server('HGET', key.queue, 'stale') or '0' }
"""


class Refused(Exception):
    """An answer that begins with `!`: a refusal, and what it is about."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.word, _, self.about = text.partition(" ")


@dataclass(frozen=True, eq=False)
class Photo:
    """All of a queue at one moment: for a comparison (in which lanes do not matter), or to be put back."""

    dumps: tuple[bytes | None, ...]
    jobs: dict[str, JobRecord]
    waiting: list[list[str]]
    """Per priority, the ids that would be taken, in order."""
    stale: int

    def __eq__(self, other: object) -> bool:
        # A timer may be left that has nothing to do any more: upkeep takes it away.
        idle = ("lanes", "timers")
        return isinstance(other, Photo) and self.but(*idle) == other.but(*idle)

    def __getitem__(self, key: str) -> bytes | None:
        return self.dumps[NAMES.index(key)]

    def but(self, *keys: str) -> dict[str, bytes | None]:
        """Everything except these keys."""
        return {name: dump for name, dump in zip(NAMES, self.dumps, strict=True) if name not in keys}


def _effective(lists: Sequence[Sequence[bytes]], skips: Sequence[bytes]) -> list[list[str]]:
    """What is left of the lists when entries that no longer count are passed over."""
    left = {key.decode(): int(n) for key, n in zip(skips[::2], skips[1::2], strict=True)}
    found: list[list[str]] = []
    for place, ids in enumerate(lists):
        kept: list[str] = []
        for id in (raw.decode() for raw in ids):
            key = f"{10 * (place + 1)}{id}"
            if left.get(key, 0) > 0:
                left[key] -= 1
            else:
                kept.append(id)
        found.append(kept)
    assert not any(left.values()), f"entries to skip that there are not: {left}"
    return found


class Engine:
    """One queue on a server, driven call by call. `now` is the given time in ms; `own_clock`: the server's."""

    def __init__(self, path: str, queue: str, *, now: int = 1_000_000_000, mutate: Mutation | None = None) -> None:
        connect: Any = UnixDomainSocketConnection  # redis-py leaves it untyped
        self.connection: Any = connect(path=path, protocol=2, socket_timeout=30)
        self.keys = Keys(queue)
        self.now = now
        self.own_clock = False
        self.mutate = mutate
        self.numbers: dict[str, int] = {}
        self.calls = dict[str, int]()
        self.lately: list[lifecycle.Run] = []
        self.known: dict[str, str] = {}
        self.read_to = 0

    # calls

    def command(self, *words: Arg) -> Any:
        """One plain command."""
        self.connection.send_packed_command(self.connection.pack_command(*words))
        return self.connection.read_response()

    def sha(self, script: Script) -> str:
        """The script's name at the server, which has it from then on."""
        if script.sha not in self.known:
            source = self.mutate(script.name, script.source) if self.mutate else script.source
            self.command("SCRIPT", "LOAD", source)
            self.known[script.sha] = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        return self.known[script.sha]

    def say(self, lane: str = "x", number: int | None = None, *, birth: int = BIRTH, mark: str = " ") -> str:
        """A lane and a number as they are sent: the lane's next, or the given one."""
        if number is None:
            number = self.numbers[lane] = self.numbers.get(lane, 0) + 1
        return f"host:1:{birth}:{lane}{mark}{number:016d}"

    def raw(self, call: Call[Any], said: str = "") -> Any:
        """The reply to a call, undecoded."""
        now = "" if self.own_clock else self.now
        words = ("EVALSHA", self.sha(call.script), len(call.keys), *call.keys, now, said, *call.args)
        return self.command(*words)

    def send(self, call: Call[T], lane: str = "x", number: int | None = None) -> T:
        """The answer to a call; a refusal is raised."""
        said = self.say(lane, number) if call.laned else ""
        return self.decoded(call, self.raw(call, said))

    def twice(self, call: Call[T]) -> T:
        """The answer to a call that is sent twice: the second time it must say the same, and change nothing."""
        return self._twice(call, self.say() if call.laned else "")

    def twice_in(self, call: Call[T], lane: str, number: int) -> T:
        """The same, in this lane and by this number."""
        return self._twice(call, self.say(lane, number))

    def _twice(self, call: Call[T], said: str) -> T:
        first = self.raw(call, said)
        before = self.photo()
        again = self.raw(call, said)
        assert self.photo().dumps == before.dumps, f"{call.script.name}: a resend changed something"
        assert _alike(call, first, again), f"{call.script.name}: {first!r}, then {again!r}"
        return self.decoded(call, first)

    def decoded(self, call: Call[T], reply: Any) -> T:
        """What a reply says; a refusal is raised."""
        if not call.laned:
            return call.decode(reply)
        if reply[:1] == b"!":
            raise Refused(reply[1:].decode())
        assert reply[:1] == b"=", reply
        return call.decode(reply[1:])

    # what is there

    def events(self, since: int = 0) -> list[RawEvent]:
        """All events with a larger number."""
        entries = self.command("XRANGE", self.keys.events, f"({since}-0", "+")
        found = [event for id, fields in entries for event in read_entry(id, fields)]
        return [event for event in found if event.seq > since]

    def news(self) -> list[RawEvent]:
        """The events since it was last asked."""
        found = self.events(self.read_to)
        if found:
            self.read_to = found[-1].seq
        return found

    def photo(self) -> Photo:
        """All there is."""
        dumps, found, lists, skips, stale = self.raw(Call(_photo_script(), self.keys.all, (), bytes))
        jobs = {
            id.decode(): JobRecord.read(self.keys.name, id.decode(), parts)
            for id, parts in zip(found[::2], found[1::2], strict=True)
        }
        return Photo(tuple(dumps), jobs, _effective(lists, skips), int(stale))

    def restore(self, photo: Photo) -> None:
        """As a server that forgot everything since."""
        self.command("DEL", *self.keys.all)
        for key, dump in zip(self.keys.all, photo.dumps, strict=True):
            if dump is not None:
                self.command("RESTORE", key, 0, dump)

    def get(self, key: str, field: str) -> Any:
        """A field of one of the queue's hashes, by the name that scripts know it by."""
        return self.command("HGET", self.keys.all[NAMES.index(key)], field)

    def size(self, key: str) -> int:
        """How much one of the queue's keys holds."""
        name = self.keys.all[NAMES.index(key)]
        kind = self.command("TYPE", name)
        words = {b"hash": "HLEN", b"zset": "ZCARD", b"list": "LLEN", b"stream": "XLEN"}
        return int(self.command(words[kind], name)) if kind in words else 0

    def job(self, id: str) -> JobRecord:
        """One job, which there must be."""
        found = self.send(views.look(self.keys, [id]))[0]
        assert found is not None, f"no job {id}"
        return found

    def status(self, id: str) -> str:
        """Where a job stands; "" where there is none."""
        found = self.send(views.look(self.keys, [id]))[0]
        return "" if found is None else str(found.status)

    def counts(self) -> views.Counts:
        """How many jobs stand where."""
        return self.send(views.counts(self.keys))

    # what tests do often

    def add(self, id: str, data: Any = None, **terms: Any) -> lifecycle.Added:
        """One add by id; `options` of the job, and the fields of a draft."""
        return self.send(lifecycle.upsert(self.keys, [draft(id, data, **terms)]))[0]

    def add_plain(self, *ids: str, data: Any = None, **terms: Any) -> None:
        """Adds of new ids by the short way."""
        text = msgspec.json.encode(data)
        self.send(lifecycle.add(self.keys, draft("", generated=True, **terms), [(id, text) for id in ids]))

    def join(self, worker: str = "w", lease: int = LEASE) -> str:
        """A worker joins."""
        self.send(lifecycle.join(self.keys, worker, lease=lease, info={}))
        return worker

    def claim(
        self, worker: str = "w", slots: int = 1, *, knows: Iterable[str] = ("",), number: int | None = None
    ) -> list[lifecycle.Run]:
        """A claim by a worker that is not fenced: its next one, or the one of that number."""
        if number is None:
            number = self.calls[worker] = self.calls.get(worker, 0) + 1
        claimed = self.send(claim_of(self.keys, worker, number, slots, knows))
        assert claimed is not None, f"{worker} is fenced"
        self.lately = claimed.runs
        return claimed.runs

    def renew(
        self, worker: str = "w", runs: Iterable[lifecycle.Run] = (), *, answered: int | None = None
    ) -> lifecycle.Renewed | None:
        """A renewal that names these runs."""
        named = [(run.id, run.lease) for run in runs]
        answered = self.calls.get(worker, 0) if answered is None else answered
        return self.send(lifecycle.renew(self.keys, worker, lease=LEASE, answered=answered, runs=named))

    def settle(self, run: lifecycle.Run, outcome: Any, worker: str | None = None) -> bool:
        """One end of one run."""
        worker = worker or run.lease.rsplit(b" ", 2)[0].decode()
        return self.send(lifecycle.leave_run(self.keys, worker, [(run, outcome)]))[0]

    def upkeep(self, nexts: Mapping[str, int] | None = None, *, limit: int = 500) -> int:
        """Slices of upkeep until there is nothing more to do; how many it took."""
        for slices in range(1, 10_000):
            if not self.send(lifecycle.upkeep(self.keys, lease=LEASE, limit=limit, nexts=nexts)).more:
                return slices
        raise AssertionError("upkeep never ends")

    def close(self) -> None:
        """Leaves nothing behind."""
        try:
            self.command("DEL", *self.keys.all)
        except ResponseError:
            pass  # a test may leave a server that refuses everything
        self.connection.disconnect()


def compact_server() -> Server:
    """On it a hash is a list until it is very long, so that equal states have equal dumps.

    The order of a table changes while it grows.
    """
    return Server(hash_max_listpack_entries=5000, hash_max_listpack_value=1 << 20, zset_max_listpack_entries=5000)


def draft(id: str, data: Any = None, **terms: Any) -> lifecycle.Draft:
    """A draft whose data is a value."""
    return lifecycle.Draft(id=id, data=msgspec.json.encode(data), **terms)


def claim_of(keys: Keys, worker: str, number: int, slots: int, knows: Iterable[str]) -> Call[lifecycle.Claimed | None]:
    """A claim by a worker that knows these tasks."""
    return lifecycle.claim(keys, worker, number=number, slots=slots, lease=LEASE, knows=pack(list(knows)))


def _alike(call: Call[Any], first: Any, again: Any) -> bool:
    """A claim said again asks for no due times once more."""
    if call.script.name == "claim" and first is not None:
        return bool(first[1:4] == again[1:4] and first[5] == again[5])
    return bool(first == again) or call.script.name in ("upkeep", "join")


@cache
def _photo_script() -> Script:
    source = scripts.resolve(PHOTO)
    return Script("photo", source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
