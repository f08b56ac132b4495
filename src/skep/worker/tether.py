"""The child's end of the two pipes between a supervisor and a worker process.

Through one the child tells, in lines of JSON, which registrations are its own, so that its supervisor can hand back the
runs of a dead one at once. Nothing goes through the other: its end tells that the supervisor is gone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from skep.core.keys import Keys
from skep.store.connect import Connection

VARIABLE = "SKEP_TETHER"


class Post(msgspec.Struct, frozen=True, omit_defaults=True):
    """A registration: where, at which queue, under which name."""

    queue: str
    prefix: str
    worker: str
    url: str | None = None
    connect_timeout: float = 5
    timeout: float = 10
    wait_replicas: int = 0
    left: bool = False

    @property
    def keys(self) -> Keys:
        """The keys of its queue."""
        return Keys(self.queue, self.prefix)

    @property
    def connection(self) -> Connection:
        """The way to its server."""
        return Connection(
            self.url,
            connect_timeout=self.connect_timeout,
            timeout=self.timeout,
            wait_replicas=self.wait_replicas,
        )


read_post = msgspec.json.Decoder(Post).decode


class Tether:
    """Tells the supervisor of this process's registrations, and notices when it is gone."""

    def __init__(self, ends: str) -> None:
        reading, writing = ends.split(",")
        self._reading = int(reading)
        self._writing = int(writing)
        for end in (self._reading, self._writing):
            os.set_inheritable(end, False)

    def watch(self, gone: Callable[[], object]) -> None:
        """Calls this when the supervisor has ended, however it did."""

        def wait() -> None:
            os.read(self._reading, 1)
            gone()

        threading.Thread(target=wait, name="skep-tether", daemon=True).start()

    def tell(self, keys: Keys, connection: Connection, worker: str, *, left: bool) -> None:
        """A registration began, or was given back. What cannot be said in JSON, another process could not use."""
        if connection.credentials is not None or connection.ssl or connection.client_options:
            return
        post = Post(
            keys.name,
            keys.prefix,
            worker,
            url=connection.url,
            connect_timeout=connection.connect_timeout,
            timeout=connection.timeout,
            wait_replicas=connection.wait_replicas,
            left=left,
        )
        try:
            os.write(self._writing, msgspec.json.encode(post) + b"\n")
        except OSError:
            pass  # the supervisor is gone, and `watch` tells it


def tether() -> Tether | None:
    """Where this process is a supervisor's child."""
    ends: Any = os.environ.pop(VARIABLE, None)
    return Tether(ends) if ends else None
