"""Tasks that run in child processes, which import this module: what the tests of processes serve."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

from skep.core.options import JobOptions
from skep.errors import PermanentError
from skep.handler import Registry, Running, TaskHandler
from skep.worker.context import current_job

registry = Registry("process tasks")


F = TypeVar("F", bound=Callable[..., Any])


def task(retries: int = 0, timeout: float | None = None) -> Callable[[F], F]:
    def add(function: F) -> F:
        how = Running(options=JobOptions(retries=retries, timeout=timeout), executor="process")
        registry.add(TaskHandler(function.__name__, function, how))
        return function

    return add


async def lifespan() -> AsyncIterator[dict[str, int]]:
    yield {"made in": os.getpid()}


registry.lifespan = lifespan


class Odd(Exception):
    """An exception that can be neither pickled nor shown."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __str__(self) -> str:
        raise RuntimeError("cannot be shown")


@task()
def pid() -> int:
    return os.getpid()


@task()
async def pid_of_async() -> int:
    await asyncio.sleep(0)
    current_job().log("from a coroutine")
    return os.getpid()


def pid_where_the_worker_says() -> int:
    return os.getpid()


registry.add(TaskHandler("pid_where_the_worker_says", pid_where_the_worker_says, Running()))


@task()
def state() -> bool:
    return bool(current_job().state["made in"] == os.getpid())


@task()
def tells() -> str:
    job = current_job()
    for number in range(100):
        job.report_progress(number, f"line {number}")
    return job.id


@task()
def odd() -> None:
    raise Odd


@task(retries=5)
def final() -> None:
    raise PermanentError("enough")


@task()
def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task()
def exits() -> None:
    os._exit(7)


@task()
def spins(path: str) -> int:
    """Native code: nothing that is raised is seen in it, and it holds the GIL."""
    Path(path).write_text(str(os.getpid()))
    return sum(range(10**12))


@task(timeout=0.2)
def spins_for_a_while(path: str) -> int:
    Path(path).write_text(str(os.getpid()))
    return sum(range(10**12))


@task()
def cleans_up(path: str) -> None:
    current_job().on_cancel(lambda: Path(path, "cleaned").touch())
    Path(path, "began").write_text(str(os.getpid()))
    threading.Event().wait()


@task()
def looks(path: str) -> None:
    Path(path, "began").write_text(str(os.getpid()))
    while not current_job().cancelled:
        time.sleep(0.001)
    Path(path, "seen").touch()
