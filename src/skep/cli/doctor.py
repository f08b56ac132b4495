"""`skep doctor`: whether the server is one to trust jobs to, and where the embedded one is."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping
from typing import Any

from skep.cli import output
from skep.cli.common import add_common
from skep.embedded import Running, default_url, folder_of, running
from skep.store import checks
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.store.transport import here_ms
from skep.store.url import parse, safe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Tells what there is, and what to do. Not done: the server would lose jobs."""
    url = args.url or default_url()
    said: dict[str, Any] = {"url": safe(url)}
    if parse(url).kind == "embedded":
        folder = folder_of(url)
        there = running(folder)
        runs = there is not None and _lives(there)
        said |= {"folder": str(folder), "running": runs}
        if not runs:
            # A look starts nothing.
            found = [checks.Finding("note", "the embedded server does not run: it starts by itself when it is used")]
            return _tell(args, said, found)
    store = Store(Connection(args.url))
    try:
        info, settings = store.look()
        here = here_ms()
    finally:
        store.close()
    return _tell(args, said | _facts(info, settings, here), checks.findings(info, settings, here))


def _facts(info: Mapping[str, str], settings: Mapping[str, str] | None, here: int) -> dict[str, Any]:
    name = "Valkey" if "valkey_version" in info else "Redis"
    there = int(info.get("server_time_usec", "0")) // 1000
    return {
        "server": f"{name} {info.get('valkey_version') or info.get('redis_version', '?')}",
        "eviction": info.get("maxmemory_policy", "?"),
        "persistence": _persistence(info, settings),
        "clock": f"{(there - here) / 1000:+.3f} s" if there else "not told",
    }


def _persistence(info: Mapping[str, str], settings: Mapping[str, str] | None) -> str:
    if info.get("aof_enabled") == "1":
        return f"append-only file, {(settings or {}).get('appendfsync', 'how often is not told')}"
    if settings is None:
        return "not told"
    return "snapshots" if settings.get("save") else "none"


def _lives(told: Running) -> bool:
    """Whether its process is there: what it told may be older than its death. Of another machine nobody knows."""
    if told.host != socket.gethostname():
        return True
    try:
        os.kill(told.server_pid, 0)
    except ProcessLookupError:
        return False
    return True


def _tell(args: argparse.Namespace, said: dict[str, Any], found: list[checks.Finding]) -> int:
    if args.json:
        output.told(said | {"findings": [{"level": each.level, "text": each.text} for each in found]})
    else:
        output.lines(said)
        for each in found:
            print(f"{each.level}: {output.escaped(each.text)}")
        if not found:
            print("all is well")
    return 1 if any(each.level == "error" for each in found) else 0
