"""The asynchronous way of a queue to its server: what `link.py` is for blocking calls."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from skep import adding
from skep.adding import AddedOne
from skep.aresults import AsyncResults
from skep.coalescing import Coalescer
from skep.core.call import Call, Flow, alone
from skep.core.keys import Keys
from skep.drafts import Template
from skep.enrolment import Enrolment
from skep.errors import QueueClosed
from skep.handler import Registry
from skep.listeners import Listeners
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.store.transport import Clock

T = TypeVar("T")


class AsyncLink:
    """What a queue has on a loop: its handlers, its connection, and who waits for results."""

    def __init__(
        self,
        keys: Keys,
        connection: Connection,
        registry: Registry,
        listeners: Listeners,
        clock: Clock | None,
    ) -> None:
        self.keys = keys
        self.connection = connection
        self.registry = registry
        self.listeners = listeners
        self._enrolment = Enrolment(keys, connection)
        self.store = AsyncStore(connection, clock)
        self._results = AsyncResults(self.store, keys)
        self._coalescer = Coalescer(self.store, keys, self._enrolment)
        self._closed = False

    async def send(self, call: Call[T]) -> T:
        """The call's answer."""
        self.check()
        if self._enrolment.is_over or not call.laned:
            return await self.store.send(call)
        return await self.store.run(self._enrolment.around(alone(call)))

    async def run(self, flow: Flow[T]) -> T:
        """The flow's answer."""
        self.check()
        return await self.store.run(flow if self._enrolment.is_over else self._enrolment.around(flow))

    def add(self, template: Template, data: bytes) -> Awaitable[AddedOne]:
        """One job, together with what else is added in this turn of the loop."""
        self.check()
        if template.is_cron:
            return self.run(adding.add(self.keys, template, data))
        return self._coalescer.add(template, data)

    @property
    def results(self) -> AsyncResults:
        """Who waits for results here."""
        self.check()
        return self._results

    def check(self) -> None:
        """Refuses a call when the queue is closed."""
        if self._closed:
            raise QueueClosed(self.keys.name)

    async def close(self) -> None:
        """Ends it; who waits for a result is told. Once more is no error."""
        self._closed = True
        await self._results.close()
        await self.store.close()
