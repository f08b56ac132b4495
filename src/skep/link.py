"""A queue's way to its server, shared by its tasks and its jobs: opened by the first call, ended by `close`."""

from __future__ import annotations

import builtins
import sys
from asyncio import _get_running_loop
from functools import cached_property
from typing import NoReturn, TypeVar

from skep import adding
from skep.adding import AddedOne
from skep.alink import AsyncLink
from skep.core.call import Call, Flow
from skep.core.keys import Keys
from skep.drafts import Template
from skep.errors import BlockingCall, QueueClosed
from skep.handler import Registry
from skep.results import Results
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.store.transport import Clock

T = TypeVar("T")


class Link:
    """What a queue has in this process: its handlers, its connection, and who waits for results."""

    def __init__(self, keys: Keys, connection: Connection, registry: Registry, clock: Clock | None = None) -> None:
        self.keys = keys
        self.connection = connection
        self.registry = registry
        self.clock = clock
        self.store = Store(connection, clock)
        self._results = Results(self.store, keys)
        self._closed = False

    @cached_property
    def aio(self) -> AsyncLink:
        """The asynchronous twin, with the same handlers."""
        return AsyncLink(self.keys, self.connection, self.registry, self.clock)

    def open_connection(self) -> Connection:
        """Where the server is; `QueueClosed` when the queue is closed."""
        if self._closed:
            raise QueueClosed(self.keys.name)
        return self.connection

    def send(self, call: Call[T]) -> T:
        """The call's answer, for a method of a queue or a job."""
        self.check()
        return self.store.send(call)

    def run(self, flow: Flow[T]) -> T:
        """The flow's answer, for a method of a queue, a task or a job."""
        self.check()
        return self.store.run(flow)

    def add(self, template: Template, data: bytes) -> AddedOne:
        """One job, for a method of a queue or a task."""
        self.check()
        return self.store.run(adding.add(self.keys, template, data))

    @property
    def results(self) -> Results:
        """Who waits for results here, for a method of a job."""
        self.check()
        return self._results

    def check(self) -> None:
        """Refuses a call of the method that called this, where it would block a running loop or the queue is closed."""
        self.open_connection()
        # In a notebook a cell may block the loop that runs it.
        if _get_running_loop() is not None and not hasattr(builtins, "__IPYTHON__"):
            self._refuse()

    def _refuse(self) -> NoReturn:
        # The nearest caller that has a twin to name: a queue, a task or a job.
        frame = sys._getframe(2)
        while frame.f_back is not None and not hasattr(frame.f_locals.get("self"), "_TWIN"):
            frame = frame.f_back
        caller = frame.f_locals.get("self")
        raise BlockingCall(getattr(caller, "_TWIN", "await queue.aio.{}(...)").format(frame.f_code.co_name))

    def close(self) -> None:
        """Ends it; who waits for a result is told. Once more is no error."""
        self._closed = True
        self.store.close()
