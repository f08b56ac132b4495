"""The application of the demo: one queue, a plain task, an asynchronous one, and one that fails now and then."""

from __future__ import annotations

import asyncio

from skep import Backoff, Queue, current_job

mail = Queue("mail")


@mail.task(retries=3, backoff=Backoff.fixed(0.1), timeout=10)
def welcome(user_id: int, lang: str = "en") -> str:
    """Greets a user; every tenth greeting fails at first."""
    if user_id % 10 == 0 and current_job().failures == 0:
        raise ConnectionError("the mail server hung up")
    return f"greeted {user_id} in {lang}"


@mail.task(retries=0)
async def score(user_id: int) -> float:
    """Takes a moment; one user cannot be scored."""
    await asyncio.sleep(0.005)
    if user_id == 13:
        raise ValueError("no score for user 13")
    return user_id / 100
