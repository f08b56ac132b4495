"""What a client calls: join the embedded server of a folder, or start it."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import selectors
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO

from skep.embedded import keeper
from skep.embedded.default import check_allowed
from skep.embedded.folder import prepare, running, socket_path
from skep.embedded.keeper import FAILED, LOG, TAKEN, Line, Running, Settings
from skep.embedded.place import folder_of
from skep.embedded.server import embedded_settings, find_binary, written
from skep.errors import NoEmbeddedServer, ServerUnavailable

GRACE = 10.0
"""Seconds that a server lives on after its last client has gone."""

DIED = f"its keeper died; see {LOG} there"
MOST_DEATHS = 3
"""Keepers that may die before they speak. One may have been killed by somebody; three have a reason."""

log = logging.getLogger("skep")
_announced: set[Path] = set()


def connect_path(url: str, *, module_file: str | None = None, timeout: float = 30.0, grace: float = GRACE) -> str:
    """The socket of the embedded server that `url` means, which answers: joined, or started if there is none.

    Connect within `grace` seconds, which hold for a server that this call starts. Whoever is slower, or loses
    the server later, simply calls again. It blocks: a start takes a quarter of a second.
    """
    check_allowed(url)
    folder = folder_of(url, module_file)
    prepare(folder)
    socket = _join(folder, deadline=time.monotonic() + timeout, grace=grace)
    _announce(folder)
    return socket


def _join(folder: Path, *, deadline: float, grace: float) -> str:
    deaths = 0
    while True:
        found = _kept(folder, deadline)
        if found:
            return found.socket
        if time.monotonic() >= deadline:
            raise ServerUnavailable(_why_late(folder))
        word = _start_keeper(folder, deadline=deadline, grace=grace)
        deaths += word == DIED
        if word.startswith(FAILED) or deaths == MOST_DEATHS:
            why = word.removeprefix(FAILED).strip()
            raise NoEmbeddedServer(f"no embedded server in {str(folder)!r}: {why}")
        if word == TAKEN:
            # By one that starts just now, or that ends: a tenth of a second, or as long as the disk takes.
            _look_out(folder, min(deadline, time.monotonic() + 0.15))


def _look_out(folder: Path, until: float) -> None:
    while time.monotonic() < until and not _kept(folder, until):
        time.sleep(0.01)


def _kept(folder: Path, deadline: float) -> Running | None:
    """The folder's server, if it answers and is kept: its keeper is among those who are connected."""
    found = running(folder)
    if found is None:
        return None
    patience = min(5.0, max(0.1, deadline - time.monotonic()))
    with Line(found.socket, patience) as line:
        return found if line.has(found.keeper_connection) else None


def _start_keeper(folder: Path, *, deadline: float, grace: float) -> str:
    """Start a keeper and hear its word: that it serves, that another one does, or why nobody can."""
    socket = socket_path(folder)
    settings = Settings(
        folder=str(folder),
        binary=str(find_binary()),
        socket=str(socket),
        config=written(embedded_settings(folder, socket)),
        libraries=_where_redis_lies(),
        grace=grace,
    )
    command = [_interpreter(), "-I", "-S", keeper.__file__, json.dumps(asdict(settings))]
    try:
        with (
            (folder / LOG).open("ab") as output,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd="/",
                start_new_session=True,
            ) as launched,
        ):
            assert launched.stdout is not None  # noqa: S101 - for the type checkers: it is the pipe above
            return _word(launched.stdout, deadline)
    except OSError as problem:
        return f"{FAILED} {problem}"


def _word(pipe: IO[bytes], deadline: float) -> str:
    """What the keeper says before the deadline. It closes the pipe when it has spoken."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            part = os.read(pipe.fileno(), 65536)
            if not part:
                return said.decode(errors="replace") or DIED
            said += part
    return TAKEN  # by itself: it is still at work


def _interpreter() -> str:
    """The Python to run the keeper with. A web server that embeds Python is no Python itself."""
    if "python" in Path(sys.executable or "").name.lower():
        return sys.executable
    return str(Path(sys.prefix, "bin", "python3"))


def _where_redis_lies() -> list[str]:
    spec = importlib.util.find_spec("redis")
    folders = (spec and spec.submodule_search_locations) or ()
    return [str(Path(folder).parent) for folder in folders]


def _why_late(folder: Path) -> str:
    found = running(folder)
    who = f"; process {found.keeper_pid} on host {found.host} keeps it" if found else ""
    return (
        f"the embedded server in {str(folder)!r} did not answer in time{who}: it may be reading its data, or"
        " run on another host, where its socket cannot be reached (then set SKEP_URL to a server);"
        f" see {str(folder / LOG)!r}"
    )


def _announce(folder: Path) -> None:
    """Once per process. Where nobody watches it is a warning: two containers would have a server each."""
    if folder in _announced:
        return
    _announced.add(folder)
    watched = sys.stderr is not None and sys.stderr.isatty()
    log.log(
        logging.INFO if watched else logging.WARNING,
        "jobs are kept by an embedded server in %r, which only this user's processes on this machine reach;"
        " where others must, set SKEP_URL to a server, such as redis://localhost:6379/0"
        " (SKEP_EMBEDDED=0 forbids the embedded one)",
        str(folder),
    )
