"""The queues of a server."""

from __future__ import annotations

from skep import views
from skep.core.call import Flow
from skep.core.keys import Keys
from skep.core.limits import check_queue_name
from skep.handler import Registry
from skep.link import Link
from skep.queue import Queue
from skep.store.connect import Connection


def queues(url: str | Connection | None = None, *, prefix: str = "skep") -> list[Queue]:
    """All queues of a server that hold anything, by name. They share a connection's settings, and open their own."""
    connection = url if isinstance(url, Connection) else Connection(url)
    check_queue_name(prefix, "prefix")
    link = Link(Keys("any", prefix), connection, Registry())
    try:
        names = link.run(_names(prefix))
    finally:
        link.close()
    return [Queue(name, connection, prefix=prefix) for name in sorted(names)]


def _names(prefix: str) -> Flow[list[str]]:
    """Those that are named; a name that has no keys is taken away."""
    found: list[str] = []
    for name in (yield views.enrolled(Keys("any", prefix))):
        keys = Keys(name, prefix)
        if (yield views.settings(keys)):
            found.append(name)
        else:
            yield views.strike(keys)
    return found
