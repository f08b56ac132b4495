"""What a worker must know of a queue. Both kinds of queues are this, and the worker imports neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from skep.core.call import Arg
from skep.core.keys import Keys
from skep.core.options import JobOptions
from skep.handler import Registry
from skep.store.connect import Connection


class Served(Protocol):
    """A queue that a worker can serve."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def keys(self) -> Keys:
        """Its keys."""
        ...

    @property
    def connection(self) -> Connection:
        """Where its server is; `QueueClosed` if the queue is closed."""
        ...

    @property
    def registry(self) -> Registry:
        """Its handlers."""
        ...

    @property
    def priority(self) -> int:
        """Queues of lower numbers are served first."""
        ...

    @property
    def settings_in_code(self) -> Mapping[str, Arg]:
        """Settings that the server is told when a worker starts."""
        ...

    @property
    def defaults(self) -> JobOptions:
        """What its jobs and tasks do not say themselves."""
        ...
