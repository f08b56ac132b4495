"""A job's life, top to bottom: one function per transition, in the order in which a job meets them.

Each builds a `Call` of the script that has its name. Nothing here talks to a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import msgspec

from skep import scripts
from skep.core.call import Arg, Call
from skep.core.keys import Keys
from skep.core.outcome import Outcome, words
from skep.core.record import pack, tail, unpack

Conflict = Literal["update", "ignore", "raise", "unique"]
Target = tuple[str, int | str | None]
"""An id, and the life that is meant; None: whatever the id is now; a status and a life: only if it still stands so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What an add may change of an unfinished job that has its id."""

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    options: bool | frozenset[str] = True
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job that is not in its queue yet: everything checked, every time in milliseconds."""

    id: str
    data: bytes
    task: str = ""
    delay: int | None = None
    due: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    generated: bool = False
    conflict: Conflict = "update"
    flags: Flags = Flags()
    window: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it needs nothing but a place: a new id, and no label, expiry or window to be noted elsewhere."""
        noted = self.options.keys() & {"name", "expires", "lasts", "again"}
        return self.generated and not noted and self.window is None


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one add."""

    outcome: Literal["added", "updated", "blocked", "ignored"]
    life: int


def add(keys: Keys, like: Draft, jobs: Sequence[tuple[str, bytes]]) -> Call[list[Added]]:
    """-> waiting | scheduled, for new jobs that are all like one plain draft in everything but id and data."""
    count = len(jobs)
    return Call(scripts.add, keys.all, _fresh(like, jobs), lambda _: [Added("added", 0)] * count)


def _fresh(like: Draft, jobs: Sequence[tuple[str, bytes]]) -> list[Arg]:
    flags, head = tail(like.task, like.options)
    when = f"+{like.delay}" if like.delay is not None else "" if like.due is None else str(like.due)
    largest = max(len(data) for _, data in jobs)
    return [when, like.options.get("priority", 40), flags, head, largest, *chain.from_iterable(jobs)]


def upsert(keys: Keys, drafts: Sequence[Draft]) -> Call[list[Added]]:
    """-> waiting | scheduled, or what the table of states says where a job has that id already."""
    return Call(scripts.upsert, keys.all, _rows(drafts), lambda answer: [Added(*each) for each in unpack(answer)])


def _rows(drafts: Sequence[Draft]) -> list[Arg]:
    return list(chain.from_iterable((draft.id, draft.data, _spec(draft)) for draft in drafts))


def stage(keys: Keys, token: str, *, ttl: int, like: Draft, jobs: Sequence[tuple[str, bytes]]) -> Call[int]:
    """Rows of a write, all like one plain draft, that nothing has decided yet. Gives how many the token has."""
    return Call(scripts.stage, keys.all, [token, ttl, len(jobs), "fresh", *_fresh(like, jobs)], int)


def stage_each(keys: Keys, token: str, *, ttl: int, drafts: Sequence[Draft]) -> Call[int]:
    """The same of rows that differ, or may meet jobs with their ids."""
    return Call(scripts.stage, keys.all, [token, ttl, len(drafts), "upsert", *_rows(drafts)], int)


REMEMBERED = 30 * 86_400_000
"""Milliseconds for which a decided write, and the last batch of a streaming query, is known."""


def decide(
    keys: Keys,
    write: str,
    tokens: Sequence[str],
    *,
    remember: int = REMEMBERED,
    stream: tuple[str, int] | None = None,
) -> Call[bool]:
    """A write takes place, whole: its staged rows will be moved. False: it was decided before, and nothing is done.

    `stream` names a query and the number of its batch: none is decided after it or a later one was.
    """
    query, batch = stream or ("", 0)
    args: list[Arg] = [write, remember, query, batch, REMEMBERED, *tokens]
    return Call(scripts.decide, keys.all, args, lambda answer: answer == b"decided")


def move(keys: Keys) -> Call[str | None]:
    """One chunk of decided rows becomes jobs. Gives the write it belongs to; None: none is left."""
    return Call(scripts.move, keys.all, (), lambda reply: None if reply is None else reply.decode(), laned=False)


def _spec(draft: Draft) -> bytes:
    flags = draft.flags
    spec: dict[str, Any] = {"options": dict(draft.options), "conflict": draft.conflict}
    spec["only"] = dict.fromkeys(flags.options, True) if isinstance(flags.options, frozenset) else {}
    given = {
        "task": draft.task or None,
        "delay": draft.delay,
        "due": draft.due,
        "window": draft.window,
        "generated": draft.generated or None,
        "data": flags.data or None,
        "all": flags.options is True or None,
        "run_at": flags.run_at or None,
        "counts": flags.counts or None,
    }
    spec.update((name, value) for name, value in given.items() if value is not None)
    return pack(spec)


def join(keys: Keys, worker: str, *, lease: int, info: Mapping[str, Any]) -> Call[int]:
    """A worker takes its first lease of so many milliseconds. Gives the server's time."""
    packed = pack({**info, "lease": lease})
    return Call(scripts.join, keys.all, (worker, lease, packed), int, laned=False)


class Run(msgspec.Struct, frozen=True, gc=False):
    """One claim of a life: what a worker is given, and what it names the run by."""

    id: str
    lease: bytes
    record: bytes
    counts: bytes | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim gave: runs, when to come back for what is due later, and due times that the server wants."""

    now: int
    head: int
    runs: list[Run]
    wanted: list[Wanted]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A cron series whose next due time the server cannot work out by itself."""

    id: str
    life: int
    cron: str
    tz: str
    slot: int
    began: int

    @property
    def key(self) -> str:
        """What its due time is called by, in the next upkeep."""
        return f"{self.id} {self.life}"


def _wanted(reply: Iterable[Sequence[Any]]) -> list[Wanted]:
    return [
        Wanted(id.decode(), life, cron.decode(), tz.decode(), slot, began) for id, life, cron, tz, slot, began in reply
    ]


def _claimed(reply: Any) -> Claimed | None:
    if reply is None:
        return None
    now, head, ids, records, counts, lease, wanted = reply
    known = counts or [None] * len(ids)
    runs = [Run(id.decode(), lease, raw, packed) for id, raw, packed in zip(ids, records, known, strict=True)]
    return Claimed(now, head, runs, _wanted(wanted))


def claim(keys: Keys, worker: str, *, number: int, slots: int, lease: int, knows: bytes) -> Call[Claimed | None]:
    """waiting -> active: the next jobs for so many free slots. The same number again gets the same runs. None: fenced.

    `knows` are the packed names of the tasks that this worker can run; the others are set aside.
    """
    return Call(scripts.claim, keys.all, (worker, number, slots, lease, knows), _claimed, laned=False)


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a renewal told: runs that are lost, runs that are to stop, whether a claim is due."""

    now: int
    lost: list[str]
    stop: list[str]
    wanted: list[Wanted]
    aside: bool


def _renewed(reply: Any) -> Renewed | None:
    if reply is None:
        return None
    now, lost, stop, wanted, aside = reply
    return Renewed(now, [id.decode() for id in lost], [id.decode() for id in stop], _wanted(wanted), bool(aside))


def renew(
    keys: Keys, worker: str, *, lease: int, answered: int, runs: Iterable[tuple[str, bytes]], info: bytes = b""
) -> Call[Renewed | None]:
    """active -> active: the worker lives on. It names its runs, up to its last answered claim. None: fenced."""
    args: list[Arg] = [worker, lease, answered, info, *(part for run in runs for part in run)]
    return Call(scripts.renew, keys.all, args, _renewed, laned=False)


def note(keys: Keys, notes: Sequence[tuple[str, bytes, str, bytes | str, str, int]]) -> Call[str]:
    """Progress and log lines: id, lease (b"": from anywhere), kind (p or l), text, level, how many lines are kept."""
    return Call(scripts.note, keys.all, list(chain.from_iterable(notes)), bytes.decode)


def leave_run(keys: Keys, worker: str, ends: Sequence[tuple[Run, Outcome]]) -> Call[list[bool]]:
    """active -> wherever each outcome leads, for all runs that ended since the last trip. False: that run was over."""
    args: list[Any] = [worker]
    last_lease, last_word, counted = b"", "", 0
    for run, outcome in ends:
        word, after, text = words(outcome)
        if word != last_word or run.lease != last_lease:
            last_lease, last_word, counted = run.lease, word, len(args) + 2
            args += (last_lease, word, 0)
        args[counted] += 1
        args += (run.id, text) if word == "succeeded" else (run.id, text, after)
    return Call(scripts.leave_run, keys.all, args, lambda said: [letter == 121 for letter in said], again=True)


def leave(keys: Keys, worker: str, *, died: bool = False) -> Call[bool]:
    """active -> waiting, for all that a worker holds: returned, or stalled where it died. True: upkeep has more."""
    return Call(scripts.leave, keys.all, (worker, "stalled" if died else "returned"), bool, laned=False)


@dataclass(frozen=True, slots=True)
class Upkept:
    """What one slice of upkeep did: how many events it made, which due times it needs, whether there is more to do."""

    events: int
    wanted: list[Wanted]
    more: bool


def upkeep(keys: Keys, *, lease: int = 30_000, limit: int = 50, nexts: Mapping[str, int] | None = None) -> Call[Upkept]:
    """One slice of all that time brings. `nexts`: due times that an earlier slice asked for."""
    args: list[Arg] = [lease, limit, *(part for due in (nexts or {}).items() for part in due)]
    return Call(
        scripts.upkeep,
        keys.all,
        args,
        lambda reply: Upkept(reply[0], _wanted(reply[1]), bool(reply[2])),
        laned=False,
    )


def _targets(targets: Iterable[Target]) -> Iterable[Arg]:
    return chain.from_iterable((id, "" if life is None else life) for id, life in targets)


def _ids(answer: bytes) -> list[str]:
    return msgspec.msgpack.decode(answer, type=list[str])


def hold(keys: Keys, targets: Iterable[Target], *, reason: str = "by hand") -> Call[list[str]]:
    """waiting | scheduled | retrying -> held. Gives the ids that this call held."""
    return Call(scripts.hold, keys.all, [reason, *_targets(targets)], _ids)


def release(keys: Keys, targets: Iterable[Target]) -> Call[list[str]]:
    """held -> waiting | scheduled | retrying, by its time and failures. Gives the ids that this call released."""
    return Call(scripts.release, keys.all, [*_targets(targets)], _ids)


def promote(keys: Keys, targets: Iterable[Target]) -> Call[list[str]]:
    """scheduled | retrying -> waiting, at the back. Gives the ids that this call promoted."""
    return Call(scripts.promote, keys.all, [*_targets(targets)], _ids)


def update(
    keys: Keys,
    targets: Iterable[Target],
    *,
    data: bytes | None = None,
    task: str | None = None,
    delay: int | None = None,
    due: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[list[str]]:
    """Changes what is named, wherever the job waits; of a run only what matters to the next. Gives the ids changed."""
    given = {"data": None if data is None else data.decode(), "task": task, "delay": delay, "due": due}
    spec = {name: value for name, value in given.items() if value is not None} | {"options": dict(options or {})}
    return Call(scripts.update, keys.all, [pack(spec), *_targets(targets)], _ids)


def cancel(
    keys: Keys, targets: Iterable[Target], *, reason: str = "on request", keep: int | None = None, active: bool = True
) -> Call[list[str]]:
    """-> cancelled, or a lasting stop request where it runs. Gives the ids that this call did either to."""
    args: list[Arg] = [reason, "" if keep is None else keep, int(active)]
    return Call(scripts.cancel, keys.all, [*args, *_targets(targets)], _ids)


def revive(keys: Keys, targets: Iterable[Target]) -> Call[list[str]]:
    """succeeded | failed | cancelled -> waiting: a new life, same data and options. Gives the ids revived."""
    return Call(scripts.revive, keys.all, [*_targets(targets)], _ids)


def redact(keys: Keys, targets: Iterable[Target]) -> Call[list[str]]:
    """Blanks data, result, error texts and logs of finished jobs. Gives the ids that this call redacted."""
    return Call(scripts.redact, keys.all, [*_targets(targets)], _ids)


def remove(keys: Keys, targets: Iterable[Target]) -> Call[list[str]]:
    """Takes jobs away, whatever they are but active. Gives the ids that this call removed."""
    return Call(scripts.remove, keys.all, [*_targets(targets)], _ids)


def pause(keys: Keys, *, wanted: bool) -> Call[bool]:
    """No worker takes anything, or does again. True if that is a change."""
    return Call(scripts.pause, keys.all, (int(wanted),), lambda answer: answer == b"1")


def configure(keys: Keys, settings: Mapping[str, Arg]) -> Call[bool]:
    """Writes settings of the queue; "" takes one back. True if anything changed."""
    return Call(scripts.configure, keys.all, [*chain.from_iterable(settings.items())], lambda answer: answer == b"1")


def drop(keys: Keys) -> Call[int]:
    """All jobs go, running ones too. Gives how many unfinished lives that ended."""
    return Call(scripts.drop, keys.all, (), int)


LAPSE = 7 * 86_400_000


def reader(
    keys: Keys, name: str, seq: int | None, *, at: int | None = None, lapse: int = LAPSE, begins: bool = False
) -> Call[int | None]:
    """A reader has done with the events up to that number, and holds back the trimming of later ones; None: it goes.

    One that `begins` to read there is registered, and keeps what it has held back before. `at` is the time of that
    event, by which it is known again.
    """
    how = "begins" if begins else "commits"
    args: list[Arg] = [name, "" if seq is None else seq, lapse, how, "" if at is None else at]
    return Call(scripts.reader, keys.all, args, lambda answer: int(answer) if answer else None)
