"""Whether a server is one to trust jobs to: judged from what it tells of itself, without I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skep.errors import ServerUnsuited

SETTINGS = ("appendfsync", "save")
"""Settings that a server tells only where CONFIG is for everybody: on managed ones it is not."""

OLDEST_REDIS = (7, 0)

# Clocks further apart than this are worth a word: an instant given as `run_at` is read on the server's.
CLOCKS_APART_MS = 5_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a server, and what to do: an `error` loses jobs, a `warning` may lose some."""

    level: Literal["error", "warning", "note"]
    text: str


def parse_info(reply: bytes) -> dict[str, str]:
    """The reply to INFO as names and texts."""
    lines = (line for line in reply.decode("utf-8", "replace").splitlines() if line and line[0] != "#")
    return {name: text for name, _, text in (line.partition(":") for line in lines)}


def parse_settings(replies: Sequence[Sequence[bytes]]) -> dict[str, str]:
    """Replies to CONFIG GET, one setting each."""
    return {reply[0].decode(): reply[1].decode() for reply in replies if reply}


def findings(info: Mapping[str, str], settings: Mapping[str, str] | None, here_ms: int) -> list[Finding]:
    """All there is to say of a server. `settings`: None where it does not tell; `here_ms`: this clock."""
    return [
        *_version(info),
        *_role(info),
        *_eviction(info),
        *_persistence(info, settings),
        *_clock(info, here_ms),
    ]


def demand(found: Sequence[Finding]) -> None:
    """Raises `ServerUnsuited` if there is an error among them."""
    errors = [finding.text for finding in found if finding.level == "error"]
    if errors:
        raise ServerUnsuited("; ".join(errors))


def _version(info: Mapping[str, str]) -> Iterator[Finding]:
    version = info.get("redis_version", "")
    if "valkey_version" in info or info.get("server_name") == "valkey":
        return
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST_REDIS:
        yield Finding("error", f"the server is Redis {version}: skep needs Redis 7.0 or later, or any Valkey")


def _role(info: Mapping[str, str]) -> Iterator[Finding]:
    if info.get("role") == "slave":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        yield Finding("error", f"the server is a replica of {primary} and takes no jobs: name its primary in the url")


def _eviction(info: Mapping[str, str]) -> Iterator[Finding]:
    policy = info.get("maxmemory_policy", "noeviction")
    wanted = "set `maxmemory-policy noeviction`, then a full server refuses adds instead"
    if policy.startswith("allkeys-"):
        yield Finding("error", f"the server evicts any key when it is full (`{policy}`), jobs too: {wanted}")
    elif policy != "noeviction":
        yield Finding("warning", f"the server evicts keys that expire when it is full (`{policy}`): {wanted}")


def _persistence(info: Mapping[str, str], settings: Mapping[str, str] | None) -> Iterator[Finding]:
    wanted = "set `appendonly yes`"
    if info.get("aof_last_write_status", "ok") != "ok":
        yield Finding("error", "the server cannot write its append-only file: look at its disk and its log")
    if info.get("aof_enabled") == "1":
        if settings and settings.get("appendfsync") == "no":
            text = "the server leaves it to the system when its file is written: set `appendfsync everysec`"
            yield Finding("warning", text)
        return
    if settings is None:
        yield Finding("note", "the server does not tell whether it keeps its data through a restart: ask who runs it")
    elif not settings.get("save"):
        yield Finding("warning", f"the server keeps jobs in memory only, and a restart loses them all: {wanted}")
    else:
        text = f"the server writes snapshots only, and what came since the last is lost: {wanted}"
        yield Finding("warning", text)


def _clock(info: Mapping[str, str], here_ms: int) -> Iterator[Finding]:
    there: Any = info.get("server_time_usec")
    if there is None:
        return
    apart = int(there) // 1000 - here_ms
    if abs(apart) > CLOCKS_APART_MS:
        way = "ahead of" if apart > 0 else "behind"
        text = f"the server's clock, by which skep goes, is {abs(apart) / 1000:.0f} s {way} this one's"
        yield Finding("warning", f"{text}: set both by NTP")
