from __future__ import annotations

import asyncio

from skep.errors import ServerError
from skep.worker.deadlines import Deadlines
from skep.worker.every import Every


def test_passes_follow_one_another_and_each_is_told() -> None:
    passes: list[int] = []

    async def run_once() -> None:
        passes.append(1)
        await asyncio.sleep(0)

    async def go() -> None:
        every = Every(0, run_once)
        task = asyncio.ensure_future(every.run())
        for _ in range(3):
            await every.passed()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(go())

    assert len(passes) >= 3


def test_a_pass_that_fails_is_told_and_the_loop_goes_on() -> None:
    told: list[str] = []
    passes: list[int] = []

    async def run_once() -> None:
        passes.append(1)
        if len(passes) == 1:
            raise ServerError("away")
        if len(passes) == 2:
            raise ValueError("a bug")

    async def go() -> None:
        every = Every(0.001, run_once, trouble=lambda error: told.append(str(error)))
        task = asyncio.ensure_future(every.run())
        for _ in range(3):
            await every.passed()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(go())

    assert told == ["away", "a bug"]


class Timed:
    """A run with a deadline."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        self.told = asyncio.Event()

    def expire(self) -> None:
        self.told.set()


def test_one_timer_tells_all_runs_whose_time_is_over_and_no_others() -> None:
    async def go() -> list[bool]:
        loop = asyncio.get_running_loop()
        now = loop.time()
        runs = [Timed(now + 30), Timed(now + 0.08), Timed(None), Timed(now + 0.02)]
        deadlines = Deadlines(runs)
        for run in runs:
            if run.deadline is not None:
                deadlines.watch(run.deadline)
        await asyncio.wait_for(asyncio.gather(runs[1].told.wait(), runs[3].told.wait()), 2)
        deadlines.close()
        return [run.told.is_set() for run in runs]

    assert asyncio.run(go()) == [False, True, False, True]


def test_a_run_that_does_not_end_is_told_again() -> None:
    async def go() -> None:
        run = Timed(asyncio.get_running_loop().time())
        deadlines = Deadlines([run])
        deadlines.watch(0)
        await asyncio.wait_for(run.told.wait(), 2)
        run.told.clear()

        await asyncio.wait_for(run.told.wait(), 3)
        deadlines.close()

    asyncio.run(go())
