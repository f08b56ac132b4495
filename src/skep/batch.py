"""Jobs that are collected, and sent together."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from skep import adding
from skep.adding import Added, Shaped, Shaper
from skep.alink import AsyncLink
from skep.core.call import Flow
from skep.core.ids import new_id
from skep.core.keys import Keys
from skep.core.options import AddOptions
from skep.drafts import Template
from skep.errors import InvalidOption
from skep.link import Link
from skep.task import BaseTask, P

R = TypeVar("R")


class BaseBatch:
    """Jobs that are checked, and not sent yet."""

    def __init__(self, keys: Keys, shaper: Shaper) -> None:
        self._keys = keys
        self._shaper = shaper
        self._collected: list[Shaped] = []

    def __len__(self) -> int:
        return len(self._collected)

    def add(self, data: Any = None, **options: Unpack[AddOptions]) -> str:
        """One more job, as `Queue.add` takes it. Gives its id."""
        return self._collect(*self._shaper.one(data, options))

    def enqueue(self, task: BaseTask[P, R], *args: P.args, **kwargs: P.kwargs) -> str:
        """One more job that calls a task of this queue, as `task.enqueue` takes it. Gives its id."""
        if task._link.keys != self._keys:
            raise InvalidOption("task", task, f"a task of queue {self._keys.name!r}, whose batch this is")
        return self._collect(*task._one(args, kwargs))

    def _collect(self, template: Template, text: bytes) -> str:
        id = template.id or new_id()
        self._collected.append((replace(template, id=id), text))
        return id

    def _flow(self) -> Flow[Added]:
        collected, self._collected = self._collected, []
        return (yield from adding.add_shaped(self._keys, collected))


class Batch(BaseBatch):
    """Jobs that are sent together at the end of the `with` block, or by `send()`; after an exception none is."""

    def __init__(self, link: Link, shaper: Shaper) -> None:
        super().__init__(link.keys, shaper)
        self._link = link

    def send(self) -> Added:
        """Adds what was collected so far, in order; `Queue.add_many` says how it ends where it ends early."""
        return self._link.run(self._flow())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._collected:
            self.send()


class AsyncBatch(BaseBatch):
    """Jobs that are sent together at the end of the `async with` block, or by `send()`; after an exception none is."""

    def __init__(self, link: AsyncLink, shaper: Shaper) -> None:
        super().__init__(link.keys, shaper)
        self._link = link

    async def send(self) -> Added:
        """Adds what was collected so far, in order; `Queue.add_many` says how it ends where it ends early."""
        return await self._link.run(self._flow())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._collected:
            await self.send()
