from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skep.embedded import keeper
from skep.embedded.keeper import Line, aside, locked, shut_the_door
from skep.testing import Server
from tests.embedded.people import connected

HOLD = """
import sys
from pathlib import Path
from skep.embedded.keeper import locked

locked(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        yield found


def test_the_door_stays_shut_if_nobody_came_in_the_last_moment(server: Server) -> None:
    socket = Path(server.path)
    with Line(socket) as line:
        _, seen = line.usage()

        shut = shut_the_door(socket, line, seen)

    assert shut is True
    assert not socket.exists()


def test_the_door_opens_again_for_a_client_that_is_there(server: Server) -> None:
    socket = Path(server.path)
    with Line(socket) as line, connected(server.path) as client:
        _, seen = line.usage()

        shut = shut_the_door(socket, line, seen)

        assert shut is False
        assert client.ping()
    assert socket.exists()
    assert not aside(socket).exists()


def test_the_door_opens_again_for_a_client_that_came_and_went_since(server: Server) -> None:
    socket = Path(server.path)
    with Line(socket) as line:
        _, seen = line.usage()
        with connected(server.path):
            pass

        shut = shut_the_door(socket, line, seen)

    assert shut is False
    assert socket.exists()


def test_a_lock_is_given_once_and_again_when_its_holder_has_died(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout
    holder.stdout.readline()

    assert locked(lock) is None

    holder.kill()
    holder.communicate()
    assert locked(lock) is not None


def test_a_keeper_loads_nothing_of_skep_nor_of_the_program_that_came_first() -> None:
    names = "print(*sorted(name for name in sys.modules if '.' not in name))"

    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import runpy, sys; runpy.run_path(sys.argv[1]); {names}",
            keeper.__file__,
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert not {"skep", "redis", "asyncio", "ctypes"} & set(done.stdout.split())
