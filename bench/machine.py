"""The machine: processor times from /proc, a private server, and what is said of where it was measured."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from redis import Redis

from skep.embedded.server import find_binary

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"


def main_thread_ns(pid: int) -> int:
    """Processor time of a process' main thread: of a server all that its commands cost."""
    return _scheduled(Path(f"/proc/{pid}/task/{pid}"))


def process_ns(pid: int) -> int:
    """Processor time of all threads of a process."""
    return sum(_scheduled(thread) for thread in Path(f"/proc/{pid}/task").iterdir())


def _scheduled(thread: Path) -> int:
    return int((thread / "schedstat").read_text().split()[0])


def seconds(act: Callable[[], object]) -> float:
    """How long it takes. What earlier passes left is collected before, not in it."""
    gc.collect()
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def used_memory(client: Redis, clients: int = 1) -> int:
    """What lies in a server when nobody but us (and so many others) is connected."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        info = client.info()
        if int(info["connected_clients"]) <= clients:
            break
        time.sleep(0.02)
    return int(client.info("memory")["used_memory"])


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def described() -> str:
    """Where this was measured."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}, {_said(str(find_binary()), '--version').split(' sha')[0]}, "
        f"node {_said('node', '--version') or 'missing'}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def note(text: str) -> None:
    """To whom watches; the table goes to standard output."""
    print(text, file=sys.stderr, flush=True)
