"""Where the server of a source is: found on the driver, told to executors, which connect when they ask something."""

from __future__ import annotations

from contextlib import closing

from skep import embedded
from skep.store.connect import Connection
from skep.store.sync import Store


def resolved(url: str | None) -> str:
    """Where the server is, as every executor can be told: a folder by name, not by who asks."""
    found = url or embedded.default_url()
    return embedded.url_of(embedded.place()) if found in ("embedded://", "embedded:///") else found


def store_at(url: str | None) -> Store:
    """A way to that server. Spark pickles it: a copy has connections of its own, from its first call on."""
    return Store(Connection(resolved(url)))


def opened(url: str | None) -> closing[Store]:
    """The same for a `with`."""
    return closing(store_at(url))
