"""What a worker and its child processes tell each other: frames of a length and a message, as MessagePack."""

from __future__ import annotations

from typing import Any

import msgspec

from skep.core.outcome import Cancelled, Failed, Outcome, Postponed, Retried, Returned, Stalled, Succeeded

LENGTH = 4
KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Succeeded, Retried, Postponed, Failed, Cancelled, Stalled, Returned)
}
NAMES: dict[type[Outcome], tuple[str, ...]] = {kind: kind.__match_args__ for kind in KINDS.values()}


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Something that is told."""


class Setup(Message, frozen=True, array_like=True, tag=True):
    """The first word to a child: what it is to be like. `lifespan`: the worker's own, as module and name."""

    path: list[str]
    modules: tuple[str, ...] = ()
    main: str | None = None
    lifespan: tuple[str, str] | None = None
    max_jobs: int | None = None
    max_rss: int | None = None
    log_level: int | None = None
    log_format: str | None = None


class Source(Message, frozen=True, array_like=True, tag=True):
    """Where a child finds a handler."""

    registry: str
    task: str
    module: str
    name: str


class Terms(Message, frozen=True, array_like=True, tag=True):
    """The rules of a run. `chosen`: its task's own function chooses the back-off."""

    retries: int
    backoff: str
    chosen: bool
    timeout: float | None
    max_logs: int


class Begin(Message, frozen=True, array_like=True, tag=True):
    """A run begins. `source` comes with the first run of a handler in that child."""

    handler: int
    source: Source | None
    number: int
    id: str
    queue: str
    worker: str
    now: int
    terms: Terms
    lease: bytes
    record: bytes
    counts: bytes | None


class Stop(Message, frozen=True, array_like=True, tag=True):
    """The run of this number is to end; `cause` is the name of one."""

    number: int
    cause: str


class Loaded(Message, frozen=True, array_like=True, tag=True):
    """From the child: its handler has been found, and begins."""


class Note(Message, frozen=True, array_like=True, tag=True):
    """From the child: progress (p) or a log line (l)."""

    kind: str
    text: bytes
    level: str


class Patience(Message, frozen=True, array_like=True, tag=True):
    """From the child: whether its run is worth some seconds when it is to end."""

    wanted: bool


class Refused(Message, frozen=True, array_like=True, tag=True):
    """From the child: the handler could not be loaded, and why; nothing was run."""

    error: bytes
    last: bool


class Ended(Message, frozen=True, array_like=True, tag=True):
    """From the child: the outcome of its run. `last`: it takes no other."""

    kind: str
    said: list[Any]
    trace: str
    last: bool


Order = Setup | Begin | Stop
Report = Loaded | Note | Patience | Refused | Ended

_encode = msgspec.msgpack.Encoder().encode
read_order = msgspec.msgpack.Decoder(Order).decode
read_report = msgspec.msgpack.Decoder(Report).decode


def frame(message: Message) -> bytes:
    """As it goes over the socket."""
    text = _encode(message)
    return len(text).to_bytes(LENGTH, "big") + text


def frames(heard: bytearray) -> list[bytes]:
    """The messages that are complete; they are taken away from what was heard."""
    found: list[bytes] = []
    at = 0
    while len(heard) >= at + LENGTH:
        end = at + LENGTH + int.from_bytes(heard[at : at + LENGTH], "big")
        if len(heard) < end:
            break
        found.append(bytes(heard[at + LENGTH : end]))
        at = end
    del heard[:at]
    return found


def ended(outcome: Outcome, trace: str, *, last: bool) -> Ended:
    """How a child tells an outcome."""
    kind = type(outcome)
    return Ended(kind.__name__, [getattr(outcome, name) for name in NAMES[kind]], trace, last)


def outcome_of(report: Ended) -> Outcome:
    """The outcome that a child has told."""
    kind: Any = KINDS[report.kind]
    made: Outcome = kind(*report.said)
    return made
