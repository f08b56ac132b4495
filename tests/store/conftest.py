from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skep import scripts
from skep.store.connect import Connection
from skep.testing import Server
from tests.support.proxy import Proxy
from tests.support.stores import MAKERS, Client

Opener = Callable[..., Client]


@pytest.fixture
def server(skep_server: Server, skep_url: str) -> Server:
    assert skep_server.url == skep_url
    return skep_server


@pytest.fixture
def proxy(server: Server, tmp_path: Path) -> Iterator[Proxy]:
    # What is known to the server is sent once, so that a test counts its own calls only.
    with server.client() as raw:
        raw.script_load(scripts.fence.source)
    made = Proxy(tmp_path / "proxy", server.path)
    yield made
    made.close()


@pytest.fixture(params=["sync", "async"])
def opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens a transport to a url; both kinds, in turn."""
    opened: list[Client] = []

    def open_one(url: str, *, clock: Callable[[], int] | None = None, **options: object) -> Client:
        made: Client = MAKERS[request.param](Connection(url, **options), clock)  # type: ignore[arg-type]
        opened.append(made)
        return made

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def client(opener: Opener, proxy: Proxy) -> Client:
    """A transport that talks through the proxy, and gives up soon."""
    return opener(proxy.url, retry_for=0.5, timeout=5)
