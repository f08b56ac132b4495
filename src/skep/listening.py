"""Who tells functions of events: in the thread that calls it, or in one beside the program."""

from __future__ import annotations

import inspect
import logging
import threading
from types import TracebackType
from typing import Self

from skep import reading
from skep.core.events import RawEvent
from skep.errors import InvalidOption, QueueClosed, ServerUnavailable, SkepError
from skep.event import shown
from skep.link import Link
from skep.listeners import Course
from skep.reading import WAIT
from skep.store.sync import Store
from skep.views import Mark

log = logging.getLogger("skep")

PAUSE = 1.0
"""Seconds between attempts to reach a server that is away."""


class Listener:
    """Tells the functions of a queue of its events, beside the program, until the end of the `with` block.

    What happens within the block is told before it ends. What a function raises ends the listening, and is raised at
    the end of the block: a reader with a name is told of that event again when it begins anew.
    """

    def __init__(self, link: Link, reader: str | None) -> None:
        self._link = link
        self._course = Course(link.keys, reader)
        self._store = Store(link.connection, link.clock)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._until: int | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """In this thread, until something is raised."""
        try:
            self._link.run(self._course.begin())
            self._go()
        finally:
            self._store.close()

    def __enter__(self) -> Self:
        self._link.run(self._course.begin())
        name = f"skep listener of {self._link.keys.name}"
        self._thread = threading.Thread(target=self._go_beside, name=name, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._until = self._link.run(reading.begin(self._link.keys, None)).seq
        except SkepError:
            self._until = 0  # the server is away, or the queue is closed: nothing more can be told
        self._stop.set()
        self._store.close()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _go_beside(self) -> None:
        try:
            self._go()
        except QueueClosed:
            pass
        except BaseException as error:
            log.exception("listening to queue %r has ended", self._link.keys.name)
            self._error = error

    def _go(self) -> None:
        course = self._course
        while self._until is None or course.place.seq < self._until:
            try:
                found = self._link.run(course.more())
                self._tell(found)
                self._link.run(course.note())
                if not found and self._until is None:
                    self._wait()
            except ServerUnavailable as error:
                log.warning("%s; the listener goes on when it is back", error)
                self._stop.wait(PAUSE)

    def _tell(self, found: list[RawEvent]) -> None:
        course = self._course
        try:
            for event in found:
                for function in self._link.listeners.of(event):
                    if inspect.iscoroutinefunction(function):
                        raise InvalidOption("on", function, "plain functions here; queue.aio.listen() awaits others")
                    function(shown(event, course.keys.name))
                course.told = Mark(event.seq, event.at)
        except BaseException:
            self._link.run(course.note())
            raise
        course.told = course.place

    def _wait(self) -> None:
        try:
            self._store.listen(reading.to_wait_for(self._course.keys, self._course.place), WAIT, count=1)
        except QueueClosed:
            if not self._stop.is_set():
                raise
