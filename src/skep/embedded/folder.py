"""The data folder of an embedded server: private, skep's own, and where its socket is told."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from skep.embedded.keeper import KEEPER_LOCK, Running
from skep.errors import InvalidOption, NoEmbeddedServer

LONGEST_SOCKET = 100
"""In bytes. A socket's name has room for 108 on Linux and 104 on macOS, the closing zero included."""


def prepare(folder: Path) -> None:
    """Make the folder, for this user alone. One that holds other things is refused, not taken over."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = {entry.name for entry in folder.iterdir()} - {"lost+found"}
        if not found and not folder.stat().st_mode & stat.S_ISVTX:  # sticky ones, such as /tmp, are for all
            # Before all else, so that a folder that has other things and not this was not made by skep.
            (folder / KEEPER_LOCK).touch(mode=0o600)
        elif KEEPER_LOCK not in found and not (folder / KEEPER_LOCK).exists():
            raise InvalidOption(
                "url", str(folder), "a folder of its own: a new or empty one, or one that it had before"
            )
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as problem:
        raise NoEmbeddedServer(
            f"no embedded server in {str(folder)!r}: {problem.strerror or problem}; name a folder of your own"
            " (embedded:///folder), or set SKEP_URL to a server, such as redis://localhost:6379/0"
        ) from problem


def running(folder: Path) -> Running | None:
    """What the keeper of this folder says of its server, if it has one. It may have died since."""
    return Running.read(folder)


def socket_path(folder: Path) -> Path:
    """Where a server of this folder listens: in it, or at a short name in a private folder elsewhere."""
    inside = folder / "server.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET:
        return inside
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16] + ".sock"
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - private in it
        path = Path(base or "", f"skep-{os.geteuid()}", name)
        if path.is_absolute() and len(os.fsencode(path)) <= LONGEST_SOCKET and _is_private(path.parent):
            return path
    raise NoEmbeddedServer(
        f"the name of {str(folder)!r} is too long for a socket, and no private folder for a short one can be"
        f" made in {tempfile.gettempdir()!r}: name another (embedded:///folder), or set SKEP_URL to a server"
    )


def _is_private(folder: Path) -> bool:
    """Made for this user alone. In a folder that all may write to, somebody else's would be a trap."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
