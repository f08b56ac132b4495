"""Both transports behind one face, so that one text tests both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from skep.core.call import Call, Flow
from skep.errors import ServerUnavailable
from skep.store.aio import AsyncStore
from skep.store.checks import Finding
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.store.transport import Clock

T = TypeVar("T")


class Client(Protocol):
    """What tests ask of a transport, whichever it is."""

    def send(self, call: Call[T]) -> T: ...
    def send_many(self, calls: Sequence[Call[Any]]) -> list[Any]: ...
    def listen(self, keys: Sequence[str] | Mapping[str, str], timeout: float, count: int | None = None) -> Any: ...
    def run(self, flow: Flow[T]) -> T: ...
    def settle(self, error: ServerUnavailable, timeout: float | None = None) -> Any: ...
    def check(self) -> list[Finding]: ...
    def ping(self) -> None: ...
    def close(self) -> None: ...


class Sync(Store):
    """The blocking transport."""

    def settle(self, error: ServerUnavailable, timeout: float | None = None) -> Any:
        """What became of a call that was given up."""
        return error.settle(timeout)


class Looped:
    """The asynchronous transport, each verb run to its end on a loop of its own."""

    def __init__(self, connection: Connection, clock: Clock | None = None) -> None:
        self.store = AsyncStore(connection, clock)
        self._runner = asyncio.Runner()

    def send(self, call: Call[T]) -> T:
        return self._runner.run(self.store.send(call))

    def send_many(self, calls: Sequence[Call[Any]]) -> list[Any]:
        return self._runner.run(self.store.send_many(calls))

    def listen(self, keys: Sequence[str] | Mapping[str, str], timeout: float, count: int | None = None) -> Any:
        return self._runner.run(self.store.listen(keys, timeout, count))

    def run(self, flow: Flow[T]) -> T:
        return self._runner.run(self.store.run(flow))

    def settle(self, error: ServerUnavailable, timeout: float | None = None) -> Any:
        return self._runner.run(error.settle(timeout))

    def check(self) -> list[Finding]:
        return self._runner.run(self.store.check())

    def ping(self) -> None:
        self._runner.run(self.store.ping())

    def close(self) -> None:
        self._runner.run(self.store.close())
        self._runner.close()


MAKERS: dict[str, type[Sync] | type[Looped]] = {"sync": Sync, "async": Looped}
