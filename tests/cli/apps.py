"""The program whose queues the tests of the command line serve."""

from __future__ import annotations

APP = """
import asyncio, os, pathlib, time
from skep import JobOptions, Queue, Worker, current_job

pathlib.Path(f"loaded-{os.getpid()}").touch()

mail = Queue("mail")
other = Queue("other")

@mail.task(retries=0)
async def nap(seconds: float) -> str:
    pathlib.Path("napping").touch()
    await asyncio.sleep(seconds)
    return f"slept in {os.getpid()}"

@mail.task(retries=0)
def stubborn(seconds: float) -> str:
    pathlib.Path("napping").touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
        except Exception:
            pass
    return "never told"

@mail.task()
async def die_once() -> str:
    if current_job().stalls == 0:
        os.kill(os.getpid(), 9)
    return "alive"

@mail.task(retries=0)
async def fails() -> None:
    raise ValueError("as asked")

@other.task()
async def where() -> str:
    return current_job().queue

both = [mail, other]
worker = Worker(mail, concurrency=3)
number = 5
"""
