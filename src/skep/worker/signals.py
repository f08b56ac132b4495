"""SIGTERM and SIGINT: the first lets a worker's runs finish, the second ends them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_signals(first: Callable[[], None], second: Callable[[], None]) -> Generator[None]:
    """While this lasts, the first signal calls the one, each further one the other."""
    loop = asyncio.get_running_loop()
    waiting = [first]

    def came() -> None:
        (waiting.pop() if waiting else second)()

    for number in STOPPING:
        loop.add_signal_handler(number, came)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
