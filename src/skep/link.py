"""A queue's way to its server, shared by its tasks and its jobs: opened by the first call, ended by `close`."""

from __future__ import annotations

import builtins
import sys
from asyncio import _get_running_loop
from functools import cached_property
from types import FrameType
from typing import NoReturn, TypeVar

from skep import adding
from skep.adding import AddedOne
from skep.alink import AsyncLink
from skep.core.call import Call, Flow, alone
from skep.core.keys import Keys
from skep.drafts import Template
from skep.enrolment import Enrolment
from skep.errors import BlockingCall, QueueClosed
from skep.handler import Registry
from skep.listeners import Listeners
from skep.results import Results
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.store.transport import Clock

T = TypeVar("T")


class Link:
    """What a queue has in this process: its handlers and listeners, its connection, and who waits for results."""

    def __init__(self, keys: Keys, connection: Connection, registry: Registry, clock: Clock | None = None) -> None:
        self.keys = keys
        self.connection = connection
        self.registry = registry
        self.clock = clock
        self.listeners = Listeners()
        self._enrolment = Enrolment(keys, connection)
        self.store = Store(connection, clock)
        self._results = Results(self.store, keys)
        self._closed = False

    @cached_property
    def aio(self) -> AsyncLink:
        """The asynchronous twin, with the same handlers."""
        return AsyncLink(self.keys, self.connection, self.registry, self.listeners, self.clock)

    def open_connection(self) -> Connection:
        """Where the server is; `QueueClosed` when the queue is closed."""
        if self._closed:
            raise QueueClosed(self.keys.name)
        return self.connection

    def send(self, call: Call[T]) -> T:
        """The call's answer, for a method of a queue or a job."""
        self.check()
        if self._enrolment.is_over or not call.laned:
            return self.store.send(call)
        return self.store.run(self._enrolment.around(alone(call)))

    def run(self, flow: Flow[T]) -> T:
        """The flow's answer, for a method of a queue, a task or a job."""
        self.check()
        return self.store.run(flow if self._enrolment.is_over else self._enrolment.around(flow))

    def add(self, template: Template, data: bytes) -> AddedOne:
        """One job, for a method of a queue or a task."""
        return self.run(adding.add(self.keys, template, data))

    @property
    def results(self) -> Results:
        """Who waits for results here, for a method of a job."""
        self.check()
        return self._results

    def check(self, twin: str | None = None) -> None:
        """Refuses a call of the method that called this, where it would block a running loop or the queue is closed.

        `twin`: what to use in its place, where that is no method of an object with a twin.
        """
        self.open_connection()
        # In a notebook a cell may block the loop that runs it.
        if _get_running_loop() is not None and not hasattr(builtins, "__IPYTHON__"):
            self._refuse(twin)

    def _refuse(self, twin: str | None) -> NoReturn:
        if twin is not None:
            raise BlockingCall(twin)
        # The nearest caller that has a twin to name: a method of a queue, a task or a job that users call.
        frame = sys._getframe(2)
        while frame.f_back is not None and not _has_twin(frame):
            frame = frame.f_back
        caller = frame.f_locals.get("self")
        raise BlockingCall(getattr(caller, "_TWIN", "await queue.aio.{}(...)").format(frame.f_code.co_name))

    def close(self) -> None:
        """Ends it; who waits for a result is told. Once more is no error."""
        self._closed = True
        self.store.close()


def _has_twin(frame: FrameType) -> bool:
    return hasattr(frame.f_locals.get("self"), "_TWIN") and not frame.f_code.co_name.startswith("_")
