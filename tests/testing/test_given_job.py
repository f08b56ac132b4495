from __future__ import annotations

import asyncio

import pytest

from skep import CurrentJob, SkepError, current_job
from skep.errors import InvalidData
from skep.testing import job


def add(current: CurrentJob) -> int:
    current.report_progress(50, "half way")
    total: int = current.data["x"] + current.data["y"]
    return total


def helper() -> str:
    return f"{current_job().task} {current_job().failures}"


def test_a_handler_is_called_with_a_job_and_what_it_says_is_kept() -> None:
    given = job({"x": 2, "y": 3})

    total = add(given)

    assert total == 5
    assert given.progress == [50]
    assert given.lines == [("info", "half way")]


def test_within_its_block_it_is_the_current_job_of_all_code() -> None:
    with job(task="resize", failures=2, meta={"a": 1}, state="pool", priority="high") as given:
        said = helper()

    assert said == "resize 2"
    assert (given.run, given.meta, given.state, given.priority) == (3, {"a": 1}, "pool", 20)
    with pytest.raises(SkepError, match="no job runs here"):
        current_job()


def test_asynchronous_code_finds_it_too() -> None:
    async def test() -> None:
        async def ask() -> str:
            return current_job().id

        with job(id="mine"):
            found = await ask()

        assert found == "mine"

    asyncio.run(test())


def test_a_cancelled_one_tells_its_handler() -> None:
    told: list[str] = []
    given = job()
    given.on_cancel(lambda: told.append("before"))

    given.cancel()
    given.on_cancel(lambda: told.append("after"))

    assert given.cancelled
    assert told == ["before", "after"]


def test_data_that_is_no_json_is_refused_as_a_queue_would() -> None:
    with pytest.raises(InvalidData):
        job(object())
