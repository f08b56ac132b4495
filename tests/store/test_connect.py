from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.credentials import UsernamePasswordCredentialProvider

from skep.embedded import default_url, running, url_of
from skep.errors import InvalidOption, NoEmbeddedServer, ServerUnavailable
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.store.dial import Dialer
from skep.store.sync import Store
from skep.testing import Server
from tests.embedded.people import end
from tests.store.conftest import Opener
from tests.support.counting import add, count


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("url", "http://cache"),
        ("connect_timeout", 0),
        ("timeout", -1),
        ("timeout", "10"),
        ("timeout", True),
        ("timeout", float("nan")),
        ("retry_for", -1),
        ("retry_for", 601),
        ("retry_for", float("inf")),
        ("wait_replicas", -1),
        ("wait_replicas", 1.5),
        ("client_options", {"decode_responses": True}),
        ("client_options", {"retry": None, "password": "secret"}),
    ],
)
def test_a_wrong_option_is_refused_at_the_door(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        Connection(**{option: value})

    assert caught.value.option == option
    assert "secret" not in str(caught.value)


def test_tls_options_belong_to_a_url_with_tls() -> None:
    with pytest.raises(InvalidOption, match="rediss://"):
        Connection("redis://cache", ssl={"ca_certs": "/ca.pem"})

    assert Connection("rediss://cache", ssl={"ca_certs": "/ca.pem"}).url


def test_a_user_is_named_once() -> None:
    with pytest.raises(InvalidOption, match="one of the two"):
        Connection("redis://:pw@cache", credentials=UsernamePasswordCredentialProvider("ann", "pw"))


def test_a_connection_is_shown_without_its_passwords() -> None:
    connection = Connection("redis://ann:secret@cache", client_options={"ssl_password": "secret"})

    assert "secret" not in f"{connection!r} {connection} {connection.safe_url} {Store(connection)!r}"
    assert repr(AsyncStore(connection)).startswith("AsyncStore(Connection('redis://ann:***@cache'")


def test_a_connection_is_a_value() -> None:
    one = Connection("redis://cache", client_options={"client_name": "mail"})

    assert one == Connection("redis://cache", client_options={"client_name": "mail"})
    assert {one: 1}[pickle.loads(pickle.dumps(one))] == 1  # noqa: S301 - our own
    with pytest.raises(AttributeError):
        one.timeout = 3  # type: ignore[misc]


def test_redis_py_resends_nothing_by_itself_and_waits_as_long_as_told(server: Server) -> None:
    made = Dialer(Connection(server.url, timeout=7, connect_timeout=3)).dial(None)

    assert made.retry.get_retries() == 0
    assert made.retry_on_error == []
    assert (made.socket_timeout, made.socket_connect_timeout) == (7, 3)
    made.disconnect()


def test_options_for_the_client_reach_its_connections(opener: Opener, server: Server) -> None:
    client = opener(server.url, client_options={"client_name": "from-a-test"})
    client.ping()

    with server.client() as raw:
        assert "from-a-test" in [known["name"] for known in raw.client_list()]


def test_credentials_are_asked_for_at_every_connection(opener: Opener) -> None:
    with Server() as own:
        own.config_set(requirepass="sesame")
        client = opener(own.url, credentials=UsernamePasswordCredentialProvider(password="sesame"))

        assert client.send(add("x")) == 1


@pytest.mark.usefixtures("skep_url")
def test_without_a_url_the_environment_says_where_the_server_is(opener: Opener, server: Server) -> None:
    client = opener(None)

    assert client.send(add("x")) == 1

    assert opener(server.url).send(count("x")) == 1
    assert Connection().safe_url == default_url()


def test_making_a_transport_touches_no_server(tmp_path: Path, opener: Opener) -> None:
    client = opener(f"unix://{tmp_path}/nothing", retry_for=0)

    with pytest.raises(ServerUnavailable, match="nothing was done"):
        client.ping()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data folder, in which nobody is at work when the test is over."""
    yield tmp_path / "jobs"
    end(tmp_path / "jobs")


def test_an_embedded_server_that_is_forbidden_is_told_at_once(
    opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKEP_EMBEDDED", "0")
    client = opener(f"embedded://{tmp_path}")

    with pytest.raises(NoEmbeddedServer, match="SKEP_EMBEDDED"):
        client.send(add("x"))


def test_an_embedded_server_that_died_is_started_again_on_its_folder(opener: Opener, folder: Path) -> None:
    client = opener(url_of(folder), retry_for=20)
    first = client.send(add("x"))
    found = running(folder)
    assert found is not None
    os.kill(found.server_pid, signal.SIGKILL)

    second = client.send(add("x"))

    # What was written last may be lost with a server that is killed.
    assert first == 1
    assert second in {1, 2}
    again = running(folder)
    assert again is not None
    assert again.server_pid != found.server_pid
