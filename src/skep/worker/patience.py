"""A call that must go through, however long its server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from skep.core.call import Call
from skep.errors import ServerUnavailable, SkepError
from skep.store.aio import AsyncStore
from skep.worker.every import FIRST_REST, LONGEST_REST

T = TypeVar("T")
Trouble = Callable[[Exception], None]


async def persist(store: AsyncStore, call: Call[T], trouble: Trouble) -> T:
    """Its answer. While the server is away it is said again and again; another refusal is raised."""
    rest = FIRST_REST
    while True:
        try:
            return await store.send(call)
        except ServerUnavailable as error:
            trouble(error)
            await asyncio.sleep(rest)
            rest = min(LONGEST_REST, rest * 2)


async def try_hard(store: AsyncStore, call: Call[T], trouble: Trouble) -> T | None:
    """The same, where a refusal changes nothing for the caller: None."""
    try:
        return await persist(store, call, trouble)
    except SkepError as error:
        trouble(error)
        return None
