"""The one reader of a process for results of a queue: a thread, for as long as somebody waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from skep import views
from skep.core.keys import Keys
from skep.store.sync import Store
from skep.views import Ending
from skep.waiting import ASK_AGAIN, EXPECT_MS, LINGER, Hear, Life, Waiter, Waiters, answers, position, trips


class Results:
    """Tells who waits for a life how it ended. The server is asked once, and then says it by itself."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiters = Waiters()
        self._reader: threading.Thread | None = None
        self._begins_at = "0-0"

    @contextmanager
    def expecting(self, lives: Sequence[Life], hear: Hear | None = None) -> Generator[list[Future[Ending]]]:
        """Promises of how these lives end, good within the block; until then `hear` is given their progress."""
        if self._pid != os.getpid():
            self._begin()  # the child of a fork has the parent's waiters, and no reader
        futures: list[Future[Ending]] = [Future() for _ in lives]
        waiters = [Waiter(life, future, hear) for life, future in zip(lives, futures, strict=True)]
        try:
            with self._lock:
                for waiter in waiters:
                    self._waiters.add(waiter)
            self._ask(lives, progress=hear is not None)
            yield futures
        finally:
            with self._lock:
                for waiter in waiters:
                    self._waiters.discard(waiter)

    def wait(self, life: Life, seconds: float | None, hear: Hear | None = None) -> Ending | None:
        """How a life ended; None: not in so many seconds. Meanwhile `hear` is given its progress, in this thread."""
        until = None if seconds is None else time.monotonic() + seconds
        news = SimpleQueue[bytes | None]()
        with self.expecting([life], None if hear is None else news.put) as [promise]:
            promise.add_done_callback(lambda _: news.put(None))
            while True:
                try:
                    text = news.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
                except Empty:
                    return None
                if text is None or hear is None:
                    return promise.result()
                hear(text)

    def _ask(self, lives: Sequence[Life], *, progress: bool) -> None:
        """What is over already is told at once; of the others the reader hears."""
        for part in trips(lives):
            while not self._is_read_from(self._look(part, progress=progress)):
                pass

    def _look(self, lives: Sequence[Life], *, progress: bool) -> str:
        expected = self._store.send(views.expect(self._keys, lives, ms=EXPECT_MS, progress=progress))
        with self._lock:
            self._waiters.expected(lives, expected)
        return expected.last

    def _take(self, number: str, life: Life, told: Ending) -> None:
        with self._lock:
            into = self._waiters.take(number, life, told)
        if into is not None:
            self._look([into], progress=False)

    def _look_again(self) -> None:
        for progress in (False, True):
            with self._lock:
                lives = self._waiters.lives(progress=progress)
            for part in trips(lives):
                self._look(part, progress=progress)

    def _is_read_from(self, last: str) -> bool:
        """Whether the reader reads all that comes behind this entry. Where somebody waits, there is one."""
        with self._lock:
            if self._reader is not None or not self._waiters:
                return position(self._begins_at) <= position(last) or not self._waiters
            self._begins_at = last
            self._reader = threading.Thread(target=self._read, name=f"skep results of {self._keys.name}", daemon=True)
            self._reader.start()
            return True

    def _read(self) -> None:
        at, asked, heard = self._begins_at, time.monotonic(), time.monotonic()
        try:
            while self._goes_on(heard):
                reply = self._store.listen({self._keys.answers: at}, LINGER, count=500)
                for number, life, ending in answers(reply) if reply else ():
                    at = number
                    self._take(number, life, ending)
                now = time.monotonic()
                if self._waiters:
                    heard = now
                if now - asked > ASK_AGAIN:
                    asked = now
                    self._look_again()
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait hear of it
            with self._lock:
                self._reader = None
                self._waiters.fail(error)

    def _goes_on(self, heard: float) -> bool:
        with self._lock:
            if self._waiters or time.monotonic() - heard < LINGER:
                return True
            self._reader = None
            return False
