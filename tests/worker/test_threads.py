from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from skep.core.options import JobOptions
from skep.core.outcome import Outcome, Succeeded
from skep.errors import JobTimeout
from skep.worker.attempt import Attempt, Cause
from skep.worker.context import current_job
from skep.worker.executors.threads import ThreadExecutor
from skep.worker.worker import Worker
from tests.support.served import Served, until
from tests.worker.test_attempt import Bench, an_attempt


async def all_there(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until this is so."""
    while not condition():
        await asyncio.to_thread(int)


def have_ended(ends: list[Any], wanted: int) -> bool:
    return len(ends) >= wanted


def run_all(attempts: list[Attempt], meanwhile: Callable[[], None] = lambda: None) -> list[Outcome]:
    """The outcomes of attempts in threads, in the order in which they end."""

    async def go() -> list[Outcome]:
        executor = ThreadExecutor()
        ends: list[Outcome] = []
        for attempt in attempts:
            place: Any = attempt.place
            place.ends = ends
            executor.start(attempt)
        await asyncio.to_thread(meanwhile)
        await asyncio.wait_for(all_there(lambda: len(ends) == len(attempts)), 20)
        executor.close()
        return ends

    return asyncio.run(go())


def test_as_many_threads_come_as_handlers_run_at_once_and_they_are_used_again() -> None:
    names: list[str] = []
    together = threading.Barrier(4)

    def go() -> None:
        names.append(threading.current_thread().name)
        together.wait(10)

    run_all([an_attempt(go) for _ in range(8)], meanwhile=lambda: None)

    assert len(set(names)) <= 8
    assert len(names) == 8


def test_what_a_handler_sets_in_its_context_is_gone_for_the_next() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")
    seen: list[str] = []

    def go() -> None:
        seen.append(variable.get())
        variable.set("dirty")

    for _ in range(3):
        run_all([an_attempt(go)])

    assert seen == ["clean"] * 3


def test_an_interrupt_lands_in_the_run_that_it_is_for_and_in_no_other() -> None:
    """Interrupts come at every instant of short runs; whatever they hit, each run ends once, and by its own cause."""
    rounds = 300
    ends: list[tuple[Attempt, Outcome]] = []

    class Recorder(Bench):
        def ended(self, attempt: Attempt, outcome: Outcome) -> None:
            ends.append((attempt, outcome))

    def short() -> str:
        for _ in range(50):
            pass
        return "done"

    async def go() -> None:
        executor = ThreadExecutor()
        for number in range(rounds):
            attempt, other = (an_attempt(short, options={"timeout": 1000, "retries": 0}) for _ in range(2))
            attempt.place = other.place = Recorder()
            executor.start(attempt)
            executor.start(other)
            for _ in range(number % 40):
                pass
            attempt.expire()
            await all_there(partial(have_ended, ends, 2 * (number + 1)))
            assert other.error is None
        executor.close()

    asyncio.run(go())

    assert len({id(attempt) for attempt, _ in ends}) == 2 * rounds
    assert all(isinstance(each, Succeeded) or attempt.cause is Cause.TIMEOUT for attempt, each in ends)


def test_a_handler_may_clean_up_when_its_time_is_over(queue: Served) -> None:
    cleaned: list[str] = []

    @queue.task(options=JobOptions(retries=0, timeout=0.1))
    def slow() -> None:
        try:
            while True:
                time.sleep(0.001)
        except JobTimeout:
            cleaned.append(current_job().id)
            raise

    with Worker(queue):
        id = queue.add("slow")
        error = queue.ended(id).error

    assert cleaned == [id]
    assert error is not None
    assert "time.sleep(0.001)" in error.traceback


@pytest.mark.parametrize("slots", [1, 3])
def test_a_worker_of_threads_stops_with_its_runs_handed_back(queue: Served, slots: int) -> None:
    @queue.task()
    def spins() -> None:
        while True:
            time.sleep(0.001)

    ids = [queue.add("spins") for _ in range(slots)]
    with Worker(queue, concurrency=slots, grace=0.1):
        until(lambda: queue.counts().active == slots)

    assert [queue.status(id) for id in ids] == ["waiting"] * slots
    assert [queue.tally(id) for id in ids] == [(0, 0, 0, 0)] * slots
