"""`@worker.lifespan`, `@queue.lifespan`: what makes pools and clients before the first run, and closes them again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias

from skep.errors import InvalidOption

Lifespan: TypeAlias = Callable[[], Any]
"""Gives a context manager, async or plain, or is a generator function that yields once."""


async def enter(stack: AsyncExitStack, lifespan: Lifespan | None) -> Any:
    """What it gives; it is left with the stack."""
    if lifespan is None:
        return None
    made: Any = lifespan()
    if inspect.isasyncgen(made):
        made = asynccontextmanager(lambda: made)()
    elif inspect.isgenerator(made):
        made = contextmanager(lambda: made)()
    if hasattr(made, "__aenter__"):
        return await stack.enter_async_context(made)
    if hasattr(made, "__enter__"):
        return stack.enter_context(made)
    raise InvalidOption("lifespan", lifespan, "a function that gives a context manager, or yields once")
