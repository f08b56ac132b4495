from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis import RedisError

from skep.embedded import connect_path, running
from skep.errors import ServerUnavailable
from tests.embedded.people import SHORT, a_plain_environment, alive, at_rest, connected, joiners, until

ANNOUNCED = """
import logging, sys
from skep import embedded

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
for _ in range(2):
    embedded.connect_path(sys.argv[1], grace=0.1)
"""


def test_the_first_client_starts_a_server_and_the_next_one_joins_it(url: str) -> None:
    with joiners(1, url) as [other]:
        other.begin()
        started = other.server()

        with connected(connect_path(url)) as client:
            joined = client.info("server")["process_id"]

    assert joined == started


@pytest.mark.parametrize("number", [2, 8])
def test_clients_that_start_at_the_same_moment_share_one_server(url: str, number: int) -> None:
    with joiners(number, url) as crowd:
        for one in crowd:
            one.begin()

        servers = {one.server() for one in crowd}

    assert len(servers) == 1


def test_the_server_survives_the_process_that_started_it(url: str, folder: Path) -> None:
    with joiners(2, url) as [first, second]:
        first.begin()
        server = first.server()
        second.begin()
        second.server()

        first.kill()

        with connected(connect_path(url)) as client:
            assert client.info("server")["process_id"] == server
        assert at_rest(folder) is False


@pytest.mark.parametrize("how", ["leave", "kill"])
def test_the_server_ends_after_the_last_client_and_nothing_is_left_but_data(url: str, folder: Path, how: str) -> None:
    with joiners(2, url) as both:
        for one in both:
            one.begin()
        server = {one.server() for one in both}.pop()
        keeper = running(folder)

        for one in both:
            getattr(one, how)()

        until(lambda: at_rest(folder), "the server has ended")
    assert keeper is not None
    until(lambda: not alive(keeper.keeper_pid), "the keeper is gone")
    assert not alive(server)
    assert {entry.name for entry in folder.iterdir()} == {
        "appendonlydir",
        "keeper.lock",
        "server.lock",
        "server.log",
        "valkey.conf",
    }


def test_the_data_are_there_the_next_time(url: str, folder: Path) -> None:
    with connected(connect_path(url, grace=SHORT)) as client:
        client.set("job", "first")
    until(lambda: at_rest(folder), "the server has ended")

    with connected(connect_path(url, grace=SHORT)) as client:
        found = client.get("job")

    assert found == "first"


def test_who_joins_in_the_moment_in_which_the_server_ends_gets_the_next_one(url: str, folder: Path) -> None:
    counts: list[int] = []

    for _ in range(6):
        with connected(connect_path(url, grace=0.05)) as client:
            counts.append(client.incr("joined"))
        until(lambda: not (folder / "server.sock").exists(), "the door is shut")

    assert counts == [1, 2, 3, 4, 5, 6]


def test_a_client_that_connects_later_than_the_grace_calls_again(url: str, folder: Path) -> None:
    late = connect_path(url, grace=SHORT)
    until(lambda: at_rest(folder), "the server has ended")

    with pytest.raises(RedisError), connected(late):
        pass
    with connected(connect_path(url, grace=SHORT)) as client:
        assert client.ping()


def test_a_client_that_is_stopped_for_longer_than_the_grace_keeps_its_server(url: str, folder: Path) -> None:
    with joiners(1, url) as [stopped]:
        stopped.begin()
        server = stopped.server()
        begun = time.monotonic()

        stopped.signal(signal.SIGSTOP)
        until(lambda: time.monotonic() > begun + 5 * SHORT, "five graces have passed")

        with connected(connect_path(url)) as client:
            assert client.info("server")["process_id"] == server


def test_a_keeper_that_is_asked_to_stop_takes_its_server_along(url: str, folder: Path) -> None:
    with connected(connect_path(url)) as client:
        client.set("job", "kept")
        found = running(folder)
        assert found is not None

        os.kill(found.keeper_pid, signal.SIGTERM)

        until(lambda: at_rest(folder), "the server has ended")
    with connected(connect_path(url, grace=SHORT)) as client:
        assert client.get("job") == "kept"


def test_a_server_that_does_not_answer_is_unavailable_and_the_text_names_its_keeper(url: str, folder: Path) -> None:
    connect_path(url, grace=SHORT)
    found = running(folder)
    assert found is not None
    os.kill(found.server_pid, signal.SIGSTOP)

    with pytest.raises(ServerUnavailable, match=rf"process {found.keeper_pid} on host") as caught:
        connect_path(url, timeout=0.3)

    assert "SKEP_URL" in str(caught.value)


@pytest.mark.parametrize("program", ["/usr/sbin/uwsgi", ""])
def test_a_program_that_embeds_python_starts_the_keeper_with_the_python_of_its_environment(
    url: str, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)

    with connected(connect_path(url, grace=SHORT)) as client:
        assert client.ping()


def test_where_nobody_watches_it_is_a_warning_once_with_the_folder_and_what_to_set(url: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANNOUNCED, url],
        env=a_plain_environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    [line] = done.stdout.splitlines()
    assert line.startswith("WARNING ")
    assert repr(str(folder)) in line
    assert "SKEP_URL" in line


def test_on_a_terminal_it_is_said_once_and_is_no_warning(url: str) -> None:
    terminal, side = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", ANNOUNCED, url],
            env=a_plain_environment(),
            stdout=subprocess.PIPE,
            stderr=side,
            text=True,
            check=True,
        )
    finally:
        os.close(side)
        os.close(terminal)

    [line] = done.stdout.splitlines()
    assert line.startswith("INFO ")
