from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from skep import AsyncQueue, Queue
from skep.testing import assert_added


@pytest.fixture
def mail(skep_url: str) -> Iterator[Queue]:
    with Queue("mail", skep_url) as queue:
        yield queue


def test_an_added_job_is_found_by_its_task_and_some_arguments(mail: Queue) -> None:
    @mail.task
    def welcome(user_id: int, lang: str = "en", tags: tuple[str, ...] = ()) -> str:
        return f"{user_id} {lang} {tags}"

    welcome.enqueue(1)
    second = welcome.enqueue(2, tags=("a",))

    found = assert_added(mail, welcome, user_id=2, lang="en", tags=("a",))

    assert found == second
    assert assert_added(mail, "welcome", lang="en") == second
    assert assert_added(mail, welcome) == second


def test_jobs_of_the_queues_handler_are_found_by_their_data(mail: Queue) -> None:
    job = mail.add({"x": 2, "y": 3})

    assert assert_added(mail, None, x=2) == job


def test_what_was_added_instead_is_told(mail: Queue) -> None:
    @mail.task
    def welcome(user_id: int) -> None: ...

    welcome.options(delay=60).enqueue(1)
    mail.add([1], task="other")

    with pytest.raises(AssertionError) as caught:
        assert_added(mail, welcome, user_id=2)

    text = str(caught.value)
    assert text.startswith("no welcome(user_id=2) was added to queue 'mail'; it has:")
    assert text.splitlines()[1:] == ["  welcome(user_id=1), scheduled", "  other([1]), waiting"]


def test_an_empty_queue_is_told_of_too(mail: Queue) -> None:
    with pytest.raises(AssertionError, match="it has no jobs at all"):
        assert_added(mail, "welcome", user_id=1)


def test_an_asynchronous_queue_is_asked_with_await(skep_url: str) -> None:
    async def test() -> None:
        async with AsyncQueue("mail", skep_url) as mail:

            @mail.task
            async def welcome(user_id: int) -> None: ...

            job = await welcome.enqueue(1)

            assert await assert_added(mail, welcome, user_id=1) == job
            with pytest.raises(AssertionError, match=r"welcome\(user_id=1\), waiting"):
                await assert_added(mail, welcome, user_id=2)

    asyncio.run(test())
