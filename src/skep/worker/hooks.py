"""`@worker.on(...)`: functions that are told of what happens in this process, without the event stream."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from skep.core.job import JobError
from skep.errors import InvalidOption
from skep.worker.context import CurrentJob

log = logging.getLogger("skep.worker")

Kind = Literal[
    "ready",
    "started",
    "progress",
    "succeeded",
    "retrying",
    "failed",
    "stalled",
    "returned",
    "cancelled",
    "error",
]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """What a hook is told. `job`: the run it is about; `value`: its progress or its result, as JSON.

    `error` is what a run failed with, `trouble` what goes wrong in the worker itself (`error`).
    """

    type: str
    queue: str | None = None
    job: CurrentJob | None = None
    value: bytes | None = None
    error: JobError | None = None
    trouble: BaseException | None = None


Hook: TypeAlias = Callable[[WorkerEvent], Awaitable[None] | None]


def check_kind(kind: str) -> None:
    """Refuses what there is nothing to be told of."""
    if kind not in KINDS:
        raise InvalidOption("kind", kind, f"one of {', '.join(KINDS)}")


class Hooks:
    """The functions that want to be told, by what they want to be told of. They are called on the worker's loop."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[Callable[[WorkerEvent], Any]]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    def add(self, kind: str, hook: Callable[[WorkerEvent], Any]) -> None:
        """One more."""
        self.by_kind.setdefault(kind, []).append(hook)

    def __contains__(self, kind: str) -> bool:
        return kind in self.by_kind

    def __bool__(self) -> bool:
        return bool(self.by_kind)

    def tell(self, event: WorkerEvent) -> None:
        """Calls them. What they raise is logged: it must not reach the run that it is told of."""
        for hook in self.by_kind.get(event.type, ()):
            try:
                given = hook(event)
                if inspect.isawaitable(given):
                    task = asyncio.ensure_future(given)
                    self._tasks.add(task)
                    task.add_done_callback(self._done)
            except Exception:
                log.exception("a hook of the worker for %r failed", event.type)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a hook of the worker failed", exc_info=task.exception())
