"""The small process that starts an embedded server, watches who uses it, and ends it after the last.

`join.py` runs this file as a script, in a session of its own, with nothing on its path but the standard
library and redis-py: it starts at once, and holds nothing of the program that happened to come first. So it
is one file, and imports nothing of skep.

Two locks in the data folder say who lives. They are the kernel's and go with their holders, however they end:

- `keeper.lock` is held by the keeper: there is one.
- `server.lock` is held by the keeper and by the server it started: a folder is never served twice, not even
  while a server that lost its keeper still writes.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket as sockets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

KEEPER_LOCK = "keeper.lock"
SERVER_LOCK = "server.lock"
LOG = "server.log"

READY, TAKEN, FAILED = "ready", "taken", "failed"
"""What a keeper tells the one who started it: it serves; another one does; why nobody can."""

LARGEST_LOG = 1 << 20
PR_SET_PDEATHSIG = 1


class CannotServe(Exception):
    """No server can be started in the folder; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that a keeper is told. `libraries` is where redis-py lies."""

    folder: str
    binary: str
    socket: str
    config: str
    libraries: list[str]
    grace: float
    bound: bool = sys.platform == "linux"
    """Whether the kernel ends the server when its keeper dies. Where it cannot, the next keeper does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What a keeper says of the server it keeps, for joiners and for `skep doctor`.

    Releases meet here: what a later one adds needs a default, and what it does not know is passed over.
    """

    socket: str
    server_pid: int
    keeper_pid: int
    keeper_connection: int
    host: str

    @staticmethod
    def file(folder: Path) -> Path:
        """Where it stands."""
        return folder / "running.json"

    @classmethod
    def read(cls, folder: Path) -> Running | None:
        """As last told; None where nobody serves, or it cannot be made out: a new keeper tells it anew."""
        try:
            told = json.loads(cls.file(folder).read_bytes())
            return cls(**{field.name: told[field.name] for field in fields(cls) if field.name in told})
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, folder: Path) -> None:
        """Tell it, all at once."""
        draft = folder / "running.json.new"
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(self.file(folder))


class Wake:
    """Sleeps until a time, a signal to stop, or the end of the server, whichever comes first."""

    def __init__(self) -> None:
        self.stopping = False
        # Both may come from the starter, and would make this process deaf.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        signal.signal(signal.SIGCHLD, self._look)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def wait(self, seconds: float) -> None:
        """Until then, or until something happens."""
        if not self.stopping and select.select([self._read], [], [], seconds)[0]:
            os.read(self._read, 64)

    def _look(self, *_: object) -> None:
        """To be woken is all."""

    def _stop(self, *_: object) -> None:
        self.stopping = True


class Line:
    """A connection to a server, never retried: that it does not answer is news here."""

    def __init__(self, socket: str | Path, timeout: float | None = None) -> None:
        # Not above: a keeper that finds the folder taken need not load it, and one that does not has a server
        # starting meanwhile.
        from redis import Redis, RedisError
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._client: Any = Redis(unix_socket_path=str(socket), socket_timeout=timeout, retry=Retry(NoBackoff(), 0))
        self.broken: type[Exception] = RedisError

    def answers(self) -> bool:
        """Whether the server is there and has read its data."""
        try:
            return bool(self._client.ping())
        except self.broken:
            return False

    def has(self, number: int) -> bool:
        """Whether it answers, and the connection of this number is among its clients'."""
        try:
            # Not "CLIENT LIST": that redis-py takes apart, and fails over a line's end in the socket's name.
            return bool(self._client.execute_command("CLIENT", "LIST", "ID", number))
        except self.broken:
            return False

    def number(self) -> int:
        """What the server calls this connection."""
        return int(self._client.client_id())

    def usage(self) -> tuple[int, int]:
        """How many others are connected, and how many ever were: who came and went counts too."""
        found = self._client.info("clients", "stats")
        return int(found["connected_clients"]) - 1, int(found["total_connections_received"])

    def ask_to_end(self) -> None:
        """Have the server end, if it is there and agrees. No snapshot: its append-only file holds all."""
        try:
            self._client.shutdown(nosave=True)
        except self.broken:
            pass  # its lock tells whether it ends

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class Keeper:
    """One server, from its first answer to its last client."""

    def __init__(self, settings: Settings, server: subprocess.Popen[bytes], wake: Wake) -> None:
        self._folder = Path(settings.folder)
        self._socket = Path(settings.socket)
        self._grace = settings.grace
        self._server = server
        self._wake = wake
        self._line = Line(self._socket)
        self._told = 0

    def await_answer(self) -> None:
        """Until the server has read its data and answers."""
        pause = 0.001
        while not self._line.answers():
            if self._server.poll() is not None:
                raise CannotServe(f"the server ended at once (exit code {self._server.returncode})")
            if self._wake.stopping:
                raise CannotServe("its keeper was told to stop")
            self._wake.wait(pause)
            pause = min(2 * pause, 0.05)

    def tell(self) -> None:
        """Say in the folder where the server is, and by whom it is kept."""
        self._told = self._line.number()
        Running(
            socket=str(self._socket),
            server_pid=self._server.pid,
            keeper_pid=os.getpid(),
            keeper_connection=self._told,
            host=sockets.gethostname(),
        ).write(self._folder)

    def watch(self) -> None:
        """Until nobody has used the server for the grace, or it cannot be used any more."""
        inode, seen, last_used = self._socket.stat().st_ino, 0, time.monotonic()
        while not self._wake.stopping:
            self._wake.wait(min(1.0, max(0.01, self._grace / 5)))
            if self._server.poll() is not None or not is_socket(self._socket, inode):
                return
            try:
                others, connections = self._line.usage()
                if self._line.number() != self._told:
                    self.tell()  # somebody cut all connections, and redis-py made a new one
            except self._line.broken:  # it is about to end: the next look tells
                continue
            now = time.monotonic()
            if others or connections != seen:
                last_used, seen = now, connections
            elif now - last_used >= self._grace and shut_the_door(self._socket, self._line, seen):
                return


def main(argument: str) -> None:
    """Keep a server as the settings say (JSON), and tell the starter on standard output what came of it."""
    if os.fork():
        os._exit(0)  # the starter waits for this one; the keeper itself is nobody's zombie when it ends
    os.umask(0o077)
    settings = Settings(**json.loads(argument))
    sys.path.extend(settings.libraries)
    try:
        keeping = locked(Path(settings.folder, KEEPER_LOCK))
        if keeping is None:
            say(TAKEN)
            return
        os.truncate(keeping, 0)
        os.write(keeping, f"{os.getpid()}\n".encode())
        serve(settings, Wake())
    except (CannotServe, OSError) as problem:
        say(f"{FAILED} {problem}{end_of_log(Path(settings.folder, LOG))}")


def serve(settings: Settings, wake: Wake) -> None:
    """Start the server, keep it, end it, and leave no trace that it ran but its data."""
    folder, socket = Path(settings.folder), Path(settings.socket)
    serving = take_over(folder, socket)
    Running.file(folder).unlink(missing_ok=True)
    server = start(settings, serving)
    try:
        keeper = Keeper(settings, server, wake)
        keeper.await_answer()
        keeper.tell()
        say(READY)
        keeper.watch()
    finally:
        Running.file(folder).unlink(missing_ok=True)
        end(server)
        socket.unlink(missing_ok=True)
        aside(socket).unlink(missing_ok=True)


def locked(path: Path) -> int | None:
    """A lock on this file, ours for as long as it is open; None where somebody else has it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def take_over(folder: Path, socket: Path, *, patience: float = 60.0) -> int:
    """The server's lock. A server that lost its keeper is asked to end: its clients find the new one."""
    deadline = time.monotonic() + patience
    asked = False
    while (file := locked(folder / SERVER_LOCK)) is None:
        before = Running.read(folder)
        if not asked:
            with Line(before.socket if before else socket, patience) as orphan:
                orphan.ask_to_end()
            asked = True
        if time.monotonic() > deadline:
            who = f"process {before.server_pid} on {before.host}" if before else "another process"
            raise CannotServe(f"{who} still serves the folder, unkept, and does not end; end it")
        time.sleep(0.01)
    return file


def start(settings: Settings, serving: int) -> subprocess.Popen[bytes]:
    """The server's process, which holds the server's lock too."""
    folder, log = Path(settings.folder), Path(settings.folder, LOG)
    (folder / "valkey.conf").write_text(settings.config)
    Path(settings.socket).unlink(missing_ok=True)
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.old"))
    with log.open("ab") as output:
        return subprocess.Popen(
            [settings.binary, folder / "valkey.conf"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            pass_fds=(serving,),
            preexec_fn=end_with_parent() if settings.bound else None,  # noqa: PLW1509 - there are no threads here
        )


def end(server: subprocess.Popen[bytes]) -> None:
    """Shut the server down, what it holds written. Only when it is gone may another one open its files."""
    while server.poll() is None:
        server.terminate()
        try:
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass  # it may refuse, while it rewrites its file; asked again, it does not


def shut_the_door(socket: Path, line: Line, seen: int) -> bool:
    """Let nobody in any more. If somebody came in the last moment, it is open again and the answer no."""
    socket.rename(aside(socket))
    if line.usage() == (0, seen):
        return True
    aside(socket).rename(socket)
    return False


def aside(socket: Path) -> Path:
    """Where a socket is put when nobody may join any more."""
    return socket.with_suffix(".closing")


def is_socket(socket: Path, inode: int) -> bool:
    """Whether it can still be joined. Where somebody removed it, or its folder, only a new server can."""
    try:
        return socket.stat().st_ino == inode
    except FileNotFoundError:
        return False


def say(word: str) -> None:
    """Tell the starter, if it still listens, and have no more to do with it."""
    try:
        os.write(1, word.encode())
    except BrokenPipeError:
        pass
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)


def end_of_log(log: Path) -> str:
    """The last lines of the server's log, for the one who has to know why it did not start."""
    try:
        return "; its log ends: " + log.read_text(errors="replace")[-1500:].strip()
    except FileNotFoundError:
        return ""


def end_with_parent() -> Callable[[], None]:
    """What a child does between fork and exec, so that the kernel ends it, gently, when this process dies."""
    import ctypes  # only here: every process that uses skep loads this file

    parent, libc = os.getpid(), ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the kernel was told
            os._exit(1)

    return bind


if __name__ == "__main__":
    main(sys.argv[1])
