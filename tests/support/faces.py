"""Both kinds of queues behind one face, so that one text tests both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from typing import Any, cast

from skep import AsyncJob, AsyncQueue, Queue
from skep.alistening import AsyncListener
from skep.batch import AsyncBatch
from skep.pages import Page
from skep.task import AsyncTask


class Looped:
    """Something asynchronous, each call of it run to its end on a loop of its own."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self.inner = inner
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        return self._plain(getattr(self.inner, name))

    def __enter__(self) -> Any:
        return self._plain(self.inner.__aenter__())

    def __exit__(self, *ended: Any) -> None:
        self._plain(self.inner.__aexit__(*ended))

    def _plain(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            return self._plain(self._runner.run(_awaited(value)))
        if isinstance(value, AsyncJob | AsyncTask | AsyncQueue | AsyncListener | AsyncBatch):
            return Looped(value, self._runner)
        if isinstance(value, Page):
            return Page([self._plain(each) for each in value], value.next_cursor)
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, AsyncIterator):
            return self._walked(value)
        if inspect.isroutine(value) or inspect.isfunction(value):
            return self._called(value)
        return value

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._plain(function(*args, **kwargs))

        return call

    def _walked(self, steps: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._plain(self._runner.run(_awaited(anext(steps))))
            except StopAsyncIteration:
                return


async def _awaited(value: Any) -> Any:
    return await value


class Faces:
    """Makes queues of one kind for a test, and closes them behind it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._runner = asyncio.Runner()
        self._made: list[Any] = []

    def make(self, name: str, *args: Any, **options: Any) -> Queue:
        """A queue; the asynchronous kind behaves like the other."""
        made: Any
        if self.kind == "sync":
            made = Queue(name, *args, **options)
        else:
            made = Looped(AsyncQueue(name, *args, **options), self._runner)
        self._made.append(made)
        return cast(Queue, made)

    def close(self) -> None:
        for each in self._made:
            each.close()
        self._runner.close()
