"""Runs `async def` handlers: a task of the worker's loop for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from skep.worker.attempt import Attempt, Cause
from skep.worker.context import current
from skep.worker.middleware import Middleware, chain

Call = Callable[[Attempt], Awaitable[Any]]


class LoopExecutor:
    """A task for each run, within the middleware. `call` is what stands innermost."""

    def __init__(
        self,
        middleware: Sequence[Middleware] = (),
        call: Call = Attempt.call,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._middleware = middleware
        self._call = call

    def start(self, attempt: Attempt) -> None:
        """Begins a run."""
        attempt.executor = self
        # As the loop would, but for a name that it has to make up; and never one that is run before others are begun.
        attempt.handle = asyncio.Task(self._run(attempt), loop=self._loop, name=attempt.run.id)

    def interrupt(self, attempt: Attempt, cause: Cause) -> None:  # noqa: ARG002 - a task knows one way to be told
        """Cancels its task. One that has not begun finds its cause when it does."""
        if attempt.begun:
            attempt.handle.cancel()

    def close(self) -> None:
        """Nothing to do: each task ends with its run."""

    async def _run(self, attempt: Attempt) -> None:
        attempt.begun = True
        current.set(attempt)
        try:
            if attempt.cause is not None:
                raise asyncio.CancelledError
            if self._middleware:
                result = await chain(self._middleware, attempt.job, partial(self._call, attempt))()
            else:
                result = await self._call(attempt)
        except BaseException as error:
            # Whatever a handler raises, SystemExit too, ends its run only; but this may be the end of the loop itself.
            if self._loop.is_closed():
                raise
            outcome = attempt.raised(error)
        else:
            outcome = attempt.returned(result)
        attempt.place.ended(attempt, outcome)
