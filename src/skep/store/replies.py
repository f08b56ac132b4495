"""What the server says, in the words of skep: errors of redis-py, refusals of scripts, each in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ExternalAuthProviderError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LostConnection

from skep.core.call import Call
from skep.core.lanes import Fate, GivenUp, Trip
from skep.errors import (
    JobActive,
    JobExists,
    JobNotFound,
    QueueFull,
    ReservedId,
    ServerError,
    ServerFull,
    ServerUnavailable,
    SkepError,
    StagingGone,
    StaleJob,
    WrongData,
)

# Said of a call as a whole, before its script wrote anything: said again later it will be taken.
FOR_THE_MOMENT = frozenset(
    (
        "LOADING",
        "BUSY",
        "READONLY",
        "MISCONF",
        "NOREPLICAS",
        "CLUSTERDOWN",
        "MASTERDOWN",
        "TRYAGAIN",
        "ASK",
        "MOVED",
        "UNBLOCKED",
    )
)
STRANGE_LANE = frozenset(("STALE", "OLDLANE"))

# A first word of the server and what is raised for it: `{}` is the rest of what it said.
REFUSALS_OF_SERVERS: dict[str, tuple[type[ServerError] | type[WrongData], str]] = {
    "OOM": (ServerFull, "the server has reached its maxmemory ({}): let workers drain it, or give it more"),
    "WRONGTYPE": (WrongData, "a key of the queue holds something that skep did not write: {}"),
    "WRONGPASS": (
        ServerError,
        "the server refused user and password: {}; look at the url or at `credentials`",
    ),
    "NOAUTH": (ServerError, "the server asks for a password: {}; write redis://:PASSWORD@HOST"),
    "NOPERM": (
        ServerError,
        "the server's user may not do this: {}; skep needs every command on keys of its prefix",
    ),
}

# A first word of a script's refusal, kept as an answer, and what is raised for it: (queue, detail) -> error.
REFUSALS_OF_SCRIPTS: dict[str, Callable[[str, str], SkepError]] = {
    "QueueFull": lambda queue, detail: QueueFull(queue, int(detail)),
    "JobExists": lambda _, detail: JobExists(detail),
    "JobActive": lambda _, detail: JobActive(detail),
    "JobNotFound": lambda _, detail: JobNotFound(detail),
    "NewerRecord": lambda _, detail: WrongData(
        f"job {detail!r} was written by a newer release of skep, which this one cannot change: upgrade it here too"
    ),
    "ReservedId": lambda _, detail: ReservedId(detail),
    "StagingGone": lambda _, detail: StagingGone(detail),
    "StaleJob": lambda _, detail: StaleJob(detail.partition(" ")[2], int(detail.partition(" ")[0])),
}


NOBODY_KNOWS = "the server holds nothing that tells what became of this call: look for what it was to change"


class TooFewCopies(LostConnection):
    """Fewer replicas than asked for had a change in time."""


def code(error: BaseException) -> str:
    """The first word of what the server said; nothing, if it was not the server that said it."""
    if not isinstance(error, ResponseError | LostConnection):
        return ""
    return error.status_code or (str(error).partition(" ")[0] if isinstance(error, ResponseError) else "")


def fate(error: BaseException) -> Fate:
    """How an attempt ended that ended with this."""
    if isinstance(error, AuthenticationError | AuthorizationError) and not isinstance(error, ExternalAuthProviderError):
        return Fate.FINAL
    if isinstance(error, BusyLoadingError):
        return Fate.LATER
    if not isinstance(error, ResponseError):
        return Fate.LOST
    word = code(error)
    if word in FOR_THE_MOMENT:
        return Fate.LATER
    return Fate.STRANGE if word in STRANGE_LANE else Fate.FINAL


def answered(error: BaseException) -> bool:
    """Whether this was the call's own reply, a refusal. Else nobody knows what became of the copy."""
    return isinstance(error, ResponseError) or (isinstance(error, RedisError) and error.status_code is not None)


def refusal(error: BaseException) -> SkepError:
    """What is raised for a refusal for good."""
    kind, text = REFUSALS_OF_SERVERS.get(code(error), (ServerError, "the server refused this: {}"))
    return kind(text.format(str(error)[:300]))


def queue_of(keys: Sequence[str]) -> str:
    """The queue that these keys are of, by its name in braces."""
    return keys[0].partition("{")[2].rpartition("}")[0] if keys else ""


def read(call: Call[Any], reply: Any) -> Any:
    """The answer in a reply, decoded; a refusal that a script kept as its answer is raised."""
    if not call.laned:
        return call.decode(reply)
    if not isinstance(reply, bytes) or reply[:1] not in (b"=", b"!"):
        raise WrongData(f"script {call.script.name!r} answered {reply!r:.100}: neither an answer nor a refusal")
    if reply[:1] == b"=":
        return call.decode(reply[1:])
    word, _, detail = reply[1:].decode("utf-8", "replace").partition(" ")
    known = REFUSALS_OF_SCRIPTS.get(word)
    raise (known(queue_of(call.keys), detail) if known else ServerError(f"the queue refused this: {word} {detail}"))


def nothing_to_ask(maybe_done: bool) -> None:
    """What became of a call that left no lane to ask: it was never sent, or nobody can know."""
    if maybe_done:
        raise ServerUnavailable(NOBODY_KNOWS, maybe_done=True)


def outcome(given: GivenUp) -> Any:
    """What a given-up call was answered; None if it never takes effect."""
    if given.kept is None:
        raise ServerUnavailable(NOBODY_KNOWS, maybe_done=True)
    return read(given.call, given.kept) if given.kept else None


def no_answer(where: str, trip: Trip, why: BaseException, now: float, *, known: bool) -> str:
    """What `ServerUnavailable` says of a trip that ended without an answer. `known`: its lane may be asked."""
    after = f"{where} gave no answer in {now - trip.began:.1f} s ({str(why) or type(why).__name__})"
    if not trip.maybe_done:
        return f"{after}: nothing was done; say it again when the server is back"
    if not trip.call.laned:
        return f"{after}: say it again when the server is back"
    if not known:
        return f"{after}: the call may have taken effect, and {NOBODY_KNOWS}"
    return f"{after}: the call may have taken effect; `error.settle()` asks the server what became of it"
