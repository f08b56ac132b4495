"""Clusters and Sentinels of one node: that their urls lead to a server, and calls follow it when it moves."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from skep.embedded import find_binary
from skep.errors import ServerUnavailable
from skep.testing import Server
from tests.store.conftest import Opener
from tests.support.counting import add, count


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Server]:
    with Server(port=0, cluster_enabled=True) as server, server.client() as client:
        raw: Any = client
        raw.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: b"cluster_state:ok" in raw.execute_command("CLUSTER", "INFO"))
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, int]]:
    """A primary and the port of a Sentinel that watches it under the name `main`."""
    folder = tmp_path_factory.mktemp("sentinel")
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
    with Server(port=0) as server:
        config = folder / "sentinel.conf"
        config.write_text(
            f"bind 127.0.0.1\nport {port}\ndir {folder}\nsentinel monitor main 127.0.0.1 {server.port} 1\n"
        )
        with (folder / "log").open("w") as log:
            sentinel = subprocess.Popen([find_binary(), config, "--sentinel"], stdout=log, stderr=log)
        try:
            until(lambda: _answers(port))
            yield server, port
        finally:
            sentinel.kill()
            sentinel.wait()


def _answers(port: int) -> bool:
    try:
        with Redis(port=port, socket_timeout=1) as raw:
            return bool(raw.ping())
    except OSError:
        return False
    except Exception as error:  # noqa: BLE001 - redis-py's, while the Sentinel starts
        return "refused" not in str(error) and not isinstance(error, ConnectionError)


def test_calls_reach_the_node_of_a_cluster_that_serves_their_queue(opener: Opener, cluster: Server) -> None:
    client = opener(f"redis+cluster://127.0.0.1:{cluster.port}")
    before = client.send(count("x"))

    assert client.send(add("x")) == before + 1
    assert client.send_many([add("x"), count("y")]) == [before + 2, 0]
    client.ping()


def test_a_slot_that_is_not_served_is_waited_for(opener: Opener, cluster: Server) -> None:
    client = opener(f"redis+cluster://127.0.0.1:{cluster.port}", retry_for=20)
    before = client.send(add("x"))
    with cluster.client() as client_of_node:
        raw: Any = client_of_node
        slot = raw.execute_command("CLUSTER", "KEYSLOT", "{mail}")
        raw.execute_command("CLUSTER", "DELSLOTS", slot)
        hasty = opener(f"redis+cluster://127.0.0.1:{cluster.port}", retry_for=0)
        with pytest.raises(ServerUnavailable) as caught:
            hasty.send(add("x"))
        raw.execute_command("CLUSTER", "ADDSLOTS", slot)

    assert not caught.value.maybe_done
    assert client.send(add("x")) == before + 1


def test_a_sentinel_tells_where_the_primary_is(opener: Opener, service: tuple[Server, int]) -> None:
    server, port = service
    client = opener(f"redis+sentinel://127.0.0.1:{port}/main")

    assert client.send(add("x")) >= 1

    assert opener(server.url).send(count("x")) >= 1


def test_a_service_that_no_sentinel_knows_has_done_nothing(opener: Opener, service: tuple[Server, int]) -> None:
    client = opener(f"redis+sentinel://127.0.0.1:{service[1]}/other", retry_for=0)

    with pytest.raises(ServerUnavailable, match="other") as caught:
        client.send(add("x"))

    assert not caught.value.maybe_done
