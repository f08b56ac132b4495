"""A real server for tests: it starts in a tenth of a second, and ends with the process that started it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from skep.embedded.folder import socket_path
from skep.embedded.keeper import Line
from skep.embedded.server import Setting, find_binary, written
from skep.errors import NoEmbeddedServer
from skep.testing import guard

if TYPE_CHECKING:
    from redis import Redis

PATIENCE = 20.0
"""Seconds that a server may take to start or to end."""


class Server:
    """A server of your own, on a unix socket in a folder of its own, that ends with this process.

    `binary` is a program or its name on the PATH, such as `redis-server`; else it is what SKEP_TEST_SERVER names, or
    the one of `embedded://`.
    With a `port` it listens on loopback too, and its url names that (0: a free one). Settings are those of
    the server, with underscores: `Server(appendonly=True, maxmemory="10mb")`. Nothing is kept on disk unless
    they say so; a `folder` that was given stays.

        with Server(maxmemory="10mb") as server:
            queue = Queue("mail", server.url)
    """

    def __init__(
        self,
        binary: str | Path | None = None,
        *,
        folder: Path | None = None,
        port: int | None = None,
        **settings: Setting,
    ) -> None:
        self._binary = _program(binary or os.environ.get("SKEP_TEST_SERVER"))
        self._given = folder is not None
        self._folder = folder
        self._settings = {name.replace("_", "-"): value for name, value in settings.items()}
        self._guard: subprocess.Popen[bytes] | None = None
        self.port = _free_port() if port == 0 else port
        self._pid: int | None = None

    @property
    def folder(self) -> Path:
        """Where its log, its socket and what it keeps lie."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="skep-"))
        return self._folder

    @property
    def path(self) -> str:
        """The unix socket that it listens on."""
        return str(socket_path(self.folder))

    @property
    def url(self) -> str:
        """What a `Queue` takes: `redis://` where it has a port, else `unix://`."""
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{quote(self.path)}"

    @property
    def pid(self) -> int:
        """Its process, while it runs: `os.kill(server.pid, signal.SIGSTOP)` and the like."""
        if self._pid is None:
            raise RuntimeError("the server does not run; start() it")
        return self._pid

    def alive(self) -> bool:
        """Whether its process runs."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def log(self) -> str:
        """All that it has written to its log."""
        return (self.folder / "server.log").read_text(errors="replace")

    def start(self) -> Server:
        """Start it, and return when it answers. Started again it has the same url, and what it kept."""
        if self.alive():
            raise RuntimeError(f"the server {self.url} runs already, as process {self._pid}")
        self._launch()
        deadline = time.monotonic() + PATIENCE
        with Line(self.path, PATIENCE) as line:
            while not line.answers():
                if not self.alive() or time.monotonic() > deadline:
                    self.kill()
                    raise NoEmbeddedServer(f"{self._binary} does not start; its log ends: {self.log[-1500:]}")
                time.sleep(0.002)
        return self

    def stop(self) -> None:
        """End it as an administrator would: what its settings keep is written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it, and start it again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and remove its folder, unless that was given."""
        self.kill()
        if self._folder is not None and not self._given:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def client(self) -> Redis:
        """A plain client, for a look at what lies in the server. Close it."""
        # Here and not above: pytest loads this package for its fixtures, also in runs that want no server.
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return Redis(unix_socket_path=self.path, retry=Retry(NoBackoff(), 0))

    def config_set(self, **settings: Setting) -> None:
        """Change settings while it runs: `config_set(maxmemory="5mb")`. A start has the first ones again."""
        client = self.client()
        try:
            for name, value in settings.items():
                client.config_set(name.replace("_", "-"), _plain(value))
        finally:
            client.close()

    def empty(self) -> None:
        """Remove all that lies in it, of every database."""
        client = self.client()
        try:
            client.flushall(asynchronous=False)
        finally:
            client.close()

    def __enter__(self) -> Server:
        try:
            return self if self.alive() else self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(self.path).unlink(missing_ok=True)
        own: dict[str, Setting] = {
            "bind": "127.0.0.1",
            "port": self.port or 0,
            "unixsocket": self.path,
            "unixsocketperm": 700,
            "dir": self.folder,
            "save": "",
            "appendonly": False,
        }
        config = self.folder / "server.conf"
        config.write_text(written(own | self._settings))
        removed = "" if self._given else str(self.folder)
        with (self.folder / "server.log").open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, removed, str(self._binary), str(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # an interrupt from the keyboard is for the tests alone
            )
        assert self._guard.stdout is not None  # noqa: S101 - for the type checkers: it is the pipe above
        said = self._guard.stdout.readline()
        self._pid = int(said) if said else None

    def _end(self, how: signal.Signals) -> None:
        """Signal the server, and wait for its guard, which ends after it."""
        if self._guard is None:
            return
        with self._guard as guarding:
            if guarding.poll() is None:
                self._send(how)
                self._send(signal.SIGCONT)  # a test may have stopped it
            try:
                guarding.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._send(signal.SIGKILL)
        self._guard = self._pid = None
        Path(self.path).unlink(missing_ok=True)

    def _send(self, what: signal.Signals) -> None:
        try:
            if self._pid:
                os.kill(self._pid, what)
        except ProcessLookupError:
            pass  # it ended by itself, and its guard does so now


def _program(binary: str | Path | None) -> Path:
    """The server to start; a name without a folder is looked for on the PATH."""
    if binary is None:
        return find_binary()
    found = shutil.which(binary)
    if found is None:
        raise NoEmbeddedServer(f"no program {str(binary)!r} here, or none that may be run: install it, or name another")
    return Path(found)


def _free_port() -> int:
    """A free port, below those that systems hand out by themselves: it stays free until it is used."""
    dice = random.SystemRandom()
    while True:
        port = dice.randrange(20_000, 32_000)
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _plain(value: Setting) -> str:
    """As CONFIG SET takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
