"""What stands around an attempt: a chain of your own coroutines, the first outermost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from skep.worker.context import CurrentJob

Next: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs what is further in, and gives what the handler returned."""

Middleware: TypeAlias = Callable[[CurrentJob, Next], Awaitable[Any]]
"""`async def around(job, call_next)`: awaits `call_next()`, returns what it gave; what it raises fails the attempt.

    async def traced(job, call_next):
        with tracer.span(job.task):
            return await call_next()
"""


def chain(middleware: Sequence[Middleware], job: CurrentJob, innermost: Next) -> Next:
    """All of them around the handler."""
    for around in reversed(middleware):
        innermost = partial(around, job, innermost)
    return innermost
