"""All that skep refuses or fails with: one tree, fields to branch on, texts that say what to do."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any


class SkepError(Exception):
    """The root of everything that skep raises."""


class InvalidOption(SkepError, ValueError):
    """An option has a value that it cannot have. `option`, `value` and `wanted` say which and what."""

    def __init__(self, option: str, value: object, wanted: str) -> None:
        shown = repr(value)
        super().__init__(f"{option}={shown[:200]}: {option} takes {wanted}")
        self.option = option
        self.value = value
        self.wanted = wanted


class InvalidName(InvalidOption):
    """A queue's name, an id or a label that cannot be one."""


class InvalidData(SkepError, ValueError):
    """Data, meta or progress that is not JSON. `path` says where in it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'data'}: {why}")
        self.path = path
        self.why = why


class PayloadTooLarge(SkepError):
    """The data of a job is larger than `max_payload`. Keep it elsewhere and add where it is."""

    def __init__(self, size: int, limit: int, what: str = "data") -> None:
        super().__init__(
            f"{what} of {size:,} bytes: at most {limit:,} are taken; keep it in a store and add where it is"
        )
        self.size = size
        self.limit = limit


class ResultTooLarge(PayloadTooLarge):
    """What a handler returned is larger than `max_result`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit, "a result")


class ReservedId(SkepError):
    """Ids that begin with `failure-` or `cron:` are the queue's own."""

    def __init__(self, id: str) -> None:
        super().__init__(f"id {id!r}: `failure-` and `cron:` begin ids of the queue's own jobs; choose another one")
        self.id = id


class JobExists(SkepError):
    """An add with `on_conflict="raise"` met a job with its id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"job {id!r} exists already; leave `on_conflict` out to update it, or say 'ignore'")
        self.id = id


class JobActive(SkepError):
    """Data, task and time of a job cannot be changed while it runs."""

    def __init__(self, id: str) -> None:
        super().__init__(
            f"job {id!r} is running: its data, task and time cannot be changed now; add it again to run it once more"
        )
        self.id = id


class StaleJob(SkepError):
    """A handle whose life is over was used to change the id's present job. Get it anew with `queue.get(id)`."""

    def __init__(self, id: str, life: int) -> None:
        super().__init__(f"job {id!r}: the life {life} of this handle is over; get the present one with queue.get()")
        self.id = id
        self.life = life


class QueueFull(SkepError):
    """The queue has `max_waiting` jobs. Nothing of this call was added: try again later."""

    def __init__(self, queue: str, limit: int) -> None:
        super().__init__(f"queue {queue!r} has {limit:,} waiting jobs, its `max_waiting`; nothing was added")
        self.queue = queue
        self.limit = limit


class QueueClosed(SkepError):
    """The queue was closed; make a new one."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} is closed; make a new Queue to go on")
        self.queue = queue


class BlockingCall(SkepError):
    """A blocking call on the thread of a running event loop."""

    def __init__(self, twin: str) -> None:
        super().__init__(f"this call would block the running event loop; use {twin}")
        self.twin = twin


class ServerError(SkepError):
    """The server cannot be used, or refused."""


class ServerUnavailable(ServerError):
    """The server did not answer within `retry_for`. `maybe_done`: whether the call may have taken effect."""

    def __init__(
        self, message: str, *, maybe_done: bool = False, ask: Callable[[float | None], Any] | None = None
    ) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done
        self._ask = ask

    def settle(self, timeout: float | None = None) -> Any:
        """Ask the server until it knows: the answer the call was given, or None: it never takes effect.

        Of an asynchronous call it is awaited: `await error.settle()`. An answer that was a refusal is raised.
        When the time is over, or the server cannot know any more, `ServerUnavailable` is raised again.
        """
        if self._ask is not None:
            return self._ask(timeout)
        if self.maybe_done:
            raise ServerError("only the process that made this call can ask what became of it")
        return None

    def told_as(self, read: Callable[[Any], Any]) -> ServerUnavailable:
        """The same, where the answer to `settle` is what this makes of it."""
        ask = self._ask
        if ask is None:
            return self

        def asked(timeout: float | None) -> Any:
            answer = ask(timeout)
            if inspect.isawaitable(answer):
                return _read_later(answer, read)
            return None if answer is None else read(answer)

        return ServerUnavailable(str(self), maybe_done=self.maybe_done, ask=asked)

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(ServerUnavailable, maybe_done=self.maybe_done), self.args)


async def _read_later(answer: Awaitable[Any], read: Callable[[Any], Any]) -> Any:
    told = await answer
    return None if told is None else read(told)


class ServerFull(ServerError):
    """The server has reached its `maxmemory`: adds are refused, work in the queue goes on."""


class ServerUnsuited(ServerError):
    """The server would lose jobs, or is too old: the text says which setting, and what to set."""


class NoEmbeddedServer(ServerError):
    """No server could be started here; the text says what to install or to set."""


class UnknownStatus(InvalidOption):
    """A status that there is not."""


class JobNotFound(SkepError):
    """There is no such job, or no longer."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no job {id!r} here: never added, removed, or pruned after its retention")
        self.id = id


class JobFailed(SkepError):
    """The awaited job failed for good. `.error` is what it failed with."""

    def __init__(self, id: str, error: Any) -> None:
        super().__init__(f"job {id!r} failed: {error}")
        self.id = id
        self.error = error


class JobCancelled(SkepError):
    """The awaited job was cancelled."""

    def __init__(self, id: str, reason: str) -> None:
        super().__init__(f"job {id!r} was cancelled: {reason}")
        self.id = id
        self.reason = reason


class PartlyAdded(SkepError):
    """An `add_many` ended early: the first `settled` items are decided, `unknown` more may be."""

    def __init__(self, settled: int, unknown: int, cause: Exception) -> None:
        super().__init__(f"{settled:,} items are settled, of {unknown:,} more nobody knows: {cause}")
        self.settled = settled
        self.unknown = unknown
        self.cause = cause

    def settle(self, timeout: float | None = None) -> Any:
        """Ask the server until it knows of the unknown ones: an `Added` that counts them, or None: they are not added.

        Of an asynchronous `add_many` it is awaited, if `unknown` is not 0.
        """
        return self.cause.settle(timeout) if isinstance(self.cause, ServerUnavailable) else None


class HistoryOff(SkepError):
    """The queue keeps no events (`history="none"`)."""


class EventsTrimmed(SkepError):
    """Events that a reader has not read yet are gone."""

    def __init__(self, queue: str, first: int, last: int) -> None:
        super().__init__(
            f"queue {queue!r}: events {first:,} to {last:,} were trimmed before this reader read them;"
            " register a reader to hold trimming back, or begin anew with since=0"
        )
        self.queue = queue
        self.first = first
        self.last = last


class HistoryForked(SkepError):
    """The server lost events that a reader has read already: what follows is another history."""


class WrongData(SkepError):
    """What the server holds is not what skep wrote."""


class JobTimeout(SkepError):
    """Raised in a handler whose time is up."""


class LeaseLost(SkepError):
    """The lease on this run ended: another worker may be running the job. Raise `lease` above the longest pause."""


class Cancelled(SkepError):
    """Raise it in a handler to cancel the job: no retry, no failure handler."""


class PermanentError(SkepError):
    """Raise it in a handler to fail the job for good: no retry."""


class Retry(SkepError):
    """Raise it in a handler to run again: `after` seconds, or `at` an instant; `count=False` uses nothing up."""

    def __init__(self, *args: object, after: float | None = None, at: float | None = None, count: bool = True) -> None:
        super().__init__(*args)
        self.after = after
        self.at = at
        self.count = count


class StagingGone(SkepError):
    """Rows that a write had staged are gone (after `stagingTtl`): nothing of it was added. Write it again."""

    def __init__(self, token: str) -> None:
        super().__init__(f"the staged rows {token} are gone, so nothing of this write was added; write it again")
        self.token = token
