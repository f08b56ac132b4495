"""Adding jobs: how fast, beside the raw server and bee-queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from statistics import median
from typing import Any

import uvloop

from bench.anchor import Anchor
from bench.machine import note, seconds
from bench.target import Target, figure
from skep import AsyncQueue, Queue
from skep.testing import Server

JOBS = 100_000
SINGLES = 1_000
TOGETHER, EACH = 100, 300


def payload() -> dict[str, int]:
    return {"x": 2, "y": 3}


def adds(anchor: Anchor, *, quick: bool) -> list[Target]:
    """`add_many`, `add` one after another, and a hundred adds at once."""
    rates: dict[str, list[float]] = {}
    shares: list[float] = []
    for nth in range(3 if quick else 6):
        note(f"adds, pass {nth + 1}")
        anchor.measure_raw()
        anchor.measure_adds()
        for name, measure in MEASURES.items():
            with Server() as server:
                rates.setdefault(name, []).append(measure(server))
        with Server() as server:
            shares += _shares(server)
    best = {name: max(passes) for name, passes in rates.items()}
    scale, by = anchor.adds()
    return [
        Target(
            part="engine",
            name=name,
            goal=goal,
            unit="jobs/s",
            value=best[name],
            scale=scale,
            scaled_by=by,
            note=f"{figure(best[name + ', uvloop'])} with uvloop" if name + ", uvloop" in best else "",
        )
        for name, goal in GOALS.items()
    ] + [
        Target(
            part="engine",
            name="add one after another, of a bare EVALSHA",
            goal=80,
            unit="%",
            value=100 * median(shares),
            note=f"{figure(best['add'])} adds/s at best; median of {len(shares)} pairs of passes",
        )
    ]


def _add_many(server: Server) -> float:
    with Queue("bench", server.url) as queue:
        items = [payload() for _ in range(JOBS)]
        queue.add(payload())
        return JOBS / seconds(lambda: queue.add_many(items))


def _on(loop: Callable[[], asyncio.AbstractEventLoop], act: Callable[[AsyncQueue], Coroutine[Any, Any, Any]]) -> Any:
    """Measures something that a coroutine does, with a connection that is open before."""

    def measure(server: Server) -> float:
        async def begin() -> AsyncQueue:
            queue = AsyncQueue("bench", server.url)
            await queue.add(payload())
            return queue

        with asyncio.Runner(loop_factory=loop) as runner:
            queue = runner.run(begin())
            took = seconds(lambda: runner.run(act(queue)))
            jobs = runner.run(queue.counts()).waiting - 1
            runner.run(queue.close())
        return jobs / took

    return measure


ITEMS = [payload() for _ in range(JOBS)]


async def _many(queue: AsyncQueue) -> None:
    await queue.add_many(ITEMS)


async def _at_once(queue: AsyncQueue) -> None:
    async def one() -> None:
        for _ in range(EACH):
            await queue.add(payload())

    await asyncio.gather(*(one() for _ in range(TOGETHER)))


def _add_one_by_one(server: Server) -> float:
    with Queue("bench", server.url) as queue:
        queue.add(payload())
        return SINGLES / seconds(lambda: _add(queue))


def _add(queue: Queue) -> None:
    for _ in range(SINGLES):
        queue.add(payload())


def _shares(server: Server) -> list[float]:
    """What `add` reaches of a bare EVALSHA of an empty script, in turns as short as a breath of the machine."""
    found: list[float] = []
    with Queue("bench", server.url) as queue, server.client() as client:
        empty = str(client.script_load(""))
        evalsha = client.evalsha

        def bare() -> None:
            for _ in range(SINGLES):
                evalsha(empty, 0)

        queue.add(payload())
        for _ in range(5):
            ours = seconds(lambda: _add(queue))
            found.append(seconds(bare) / ours)
    return found


MEASURES: dict[str, Callable[[Server], float]] = {
    "add_many, sync": _add_many,
    "add_many, async": _on(asyncio.new_event_loop, _many),
    "add_many, async, uvloop": _on(uvloop.new_event_loop, _many),
    "100 concurrent AsyncQueue.add": _on(asyncio.new_event_loop, _at_once),
    "100 concurrent AsyncQueue.add, uvloop": _on(uvloop.new_event_loop, _at_once),
    "add": _add_one_by_one,
}
GOALS = {"add_many, sync": 400_000, "add_many, async": 400_000, "100 concurrent AsyncQueue.add": 150_000}
