"""Who uses an embedded server in these tests: processes that join it, leave it and die."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from skep.embedded import running
from skep.embedded.keeper import KEEPER_LOCK, SERVER_LOCK

SHORT = 0.2
"""Seconds after its last client in which a server of these tests ends."""

JOIN = """
import sys
from redis import Redis
from skep import embedded

url, grace = sys.argv[1:]
print("here", flush=True)
sys.stdin.readline()
client = Redis(unix_socket_path=embedded.connect_path(url, grace=float(grace)))
print(client.info("server")["process_id"], flush=True)
sys.stdin.read()
"""


def until(condition: Callable[[], Any], what: str, seconds: float = 15) -> Any:
    """What the condition gives, once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}"
        time.sleep(0.005)
    return found


def a_plain_environment(**more: str) -> dict[str, str]:
    """As of a developer's shell: no pytest in it, nothing said to skep."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "SKEP"))} | more


class Joiner:
    """A process that joins when it is told, and stays until it is told to leave, or killed."""

    def __init__(self, url: str, grace: float = SHORT) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", JOIN, url, str(grace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=a_plain_environment(),
        )
        self._heard()

    def begin(self) -> None:
        """Have it join; `server()` tells when it has."""
        assert self._process.stdin
        self._process.stdin.write("join\n")

    def server(self) -> int:
        """The pid of the server that it has joined."""
        return int(self._heard())

    def kill(self) -> None:
        """End it by the signal that nobody can catch."""
        self._process.kill()
        self._process.communicate()

    def signal(self, number: signal.Signals) -> None:
        """Stop it, for instance."""
        self._process.send_signal(number)

    def leave(self) -> None:
        """Let it end as programs do."""
        self._process.communicate()

    def _heard(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"a joiner failed: {self._process.communicate()[1]}")
        return line


@contextmanager
def joiners(number: int, url: str, grace: float = SHORT) -> Generator[list[Joiner]]:
    """So many processes, ready to join at the same moment."""
    found = [Joiner(url, grace) for _ in range(number)]
    try:
        yield found
    finally:
        for one in found:
            one.kill()


@contextmanager
def connected(socket: str) -> Generator[Any]:
    """A client of this process, connected."""
    client = Redis(unix_socket_path=socket, decode_responses=True, retry=Retry(NoBackoff(), 0))
    try:
        client.ping()
        yield client
    finally:
        client.close()


def alive(pid: int) -> bool:
    """Whether this process runs; one that only waits to be noticed does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def at_rest(folder: Path) -> bool:
    """Whether neither a keeper nor a server is at work in the folder."""
    return all(_free(folder / name) for name in (KEEPER_LOCK, SERVER_LOCK))


def end(folder: Path) -> None:
    """End what is at work in the folder, whatever state a test has left it in."""

    def gone() -> bool:
        found = running(folder)
        if found and not at_rest(folder):
            _signal(found.keeper_pid)
            _signal(found.server_pid)
        return at_rest(folder)

    until(gone, f"nobody works in {folder}")


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def _free(lock: Path) -> bool:
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
