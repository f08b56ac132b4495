"""Other job queues in the same run, driven by what `peers/` has for them; over loopback TCP, as their references.

bee-queue is installed from npm the first time; BullMQ and Dramatiq with `run.py --peers`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import BUILD, ROOT, note
from skep.testing import Server

BULK_PER_S = 128_447
DRAINED_PER_S = 30_075
ROUND_TRIP_MS = 0.29
"""What bee-queue did when the targets were set: results/baseline.md, B, C and E."""

BEE = "bee-queue 2.0.0"
JOBS = 20_000
PATIENCE = 30.0
PEERS = ROOT / "bench" / "peers"
NODE = BUILD / "node"
DRAMATIQ = BUILD / "dramatiq"
COUNTED = struct.Struct("<qdd")
PACKAGES = {"bee-queue": ("bee-queue@2.0.0",), "bullmq": ("bullmq@6.7.0", "ioredis@6")}


@dataclass(frozen=True, slots=True)
class Peer:
    """Another queue, in the configuration that drained fastest of all that results/baseline.md has of it."""

    name: str
    adapter: str
    program: tuple[str, ...]
    jobs: int = JOBS
    worker: Mapping[str, Any] = field(default_factory=dict[str, Any])
    producer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def bulk(self, server: Server) -> float:
        """Jobs a second that one process adds with its fastest call."""
        said = self._told(server, "bulk", self.jobs)
        return float(said["n"] / said["secs"])

    def drain(self, server: Server) -> float:
        """Jobs a second of one worker, from its first job to its last; they wait already."""
        with self._worker(server, self.worker) as folder:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                time.sleep(0.01)
                count, first, last = _counted(folder)
                if count >= self.jobs:
                    return count / (last - first)
        raise TimeoutError(f"{self.name} has not run {self.jobs} jobs within {PATIENCE:g} s")

    def round_trips(self, server: Server, count: int) -> list[float]:
        """Milliseconds from an add to its result, seen by who added: of bee-queue, with its events, those that come."""
        with self._worker(server, {"concurrency": 10}):
            return list(self._told(server, "roundtrip", count)["ms"])

    def _command(self, role: str, jobs: int, options: Mapping[str, Any]) -> list[str]:
        return [*self.program, self.adapter, role, str(jobs), json.dumps(dict(options))]

    def _env(self, server: Server, folder: str) -> dict[str, str]:
        own = {"BENCH_URL": server.url, "BENCH_PROBE": folder, "BENCH_NODE": str(NODE)}
        return {**os.environ, **own, **self.env}

    def _told(self, server: Server, role: str, jobs: int) -> dict[str, Any]:
        command = self._command(role, jobs, self.producer)
        env = self._env(server, str(server.folder))
        ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        for line in ended.stdout.splitlines():
            if line.startswith("RESULT "):
                told: dict[str, Any] = json.loads(line[7:])
                return told
        raise RuntimeError(f"{self.name} {role}: {(ended.stderr or ended.stdout)[-500:]}")

    @contextmanager
    def _worker(self, server: Server, options: Mapping[str, Any]) -> Generator[Path]:
        with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
            command = self._command("work", 0, options)
            env = self._env(server, folder)
            # A group of its own: Dramatiq's worker has children.
            with subprocess.Popen(
                command,
                env=env,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                try:
                    yield Path(folder)
                finally:
                    os.killpg(process.pid, signal.SIGKILL)


def _counted(folder: Path) -> tuple[int, float, float]:
    """How many jobs have run, and when the first and the last one did."""
    found = [
        COUNTED.unpack(raw) for raw in (path.read_bytes() for path in folder.glob("*.cnt")) if len(raw) == COUNTED.size
    ]
    found = [each for each in found if each[0]]
    if not found:
        return 0, 0.0, 0.0
    return sum(each[0] for each in found), min(each[1] for each in found), max(each[2] for each in found)


def installed(*, everyone: bool) -> list[Peer]:
    """Those that can be measured here; where bee-queue cannot, that is said."""
    if everyone and not (DRAMATIQ / "bin" / "python").exists():
        _install_dramatiq()
    _install_node(["bee-queue", "bullmq"] if everyone or _has("bullmq") else ["bee-queue"])
    node = ("node", str(PEERS / "driver.js"))
    found: list[Peer] = []
    if _has("bee-queue"):
        lean = {"concurrency": 100, "lean": True, "remove": True}
        found.append(Peer(BEE, "bee_queue", node, worker=lean))
    if _has("bullmq"):
        removing = {"remove": True}
        found.append(Peer("BullMQ 6.7.0", "bullmq", node, worker={"concurrency": 100}, producer=removing))
    if (DRAMATIQ / "bin" / "python").exists():
        env = {
            "BENCH_RESULTS": "0",
            "dramatiq_queue_prefetch": "1000",
            "PYTHONPATH": os.pathsep.join(map(str, (PEERS, PEERS / "adapters"))),
        }
        program = (str(DRAMATIQ / "bin" / "python"), str(PEERS / "driver.py"))
        found.append(Peer("Dramatiq", "dramatiq_peer", program, jobs=5_000, worker={"concurrency": 8}, env=env))
    return found


def _has(package: str) -> bool:
    return shutil.which("node") is not None and (NODE / "node_modules" / package / "package.json").exists()


def _install_node(packages: list[str]) -> None:
    if all(map(_has, packages)):
        return
    if shutil.which("node") is None or shutil.which("npm") is None:
        note("node or npm is missing: the raw server is the only anchor, and bee-queue is not measured")
        return
    note(f"installing {', '.join(packages)} from npm into {NODE.relative_to(ROOT)} ...")
    NODE.mkdir(parents=True, exist_ok=True)
    wanted = [each for name in packages for each in PACKAGES[name]]
    quiet = ["--no-save", "--no-fund", "--no-audit", "--loglevel=error", "--fetch-retries=1"]
    _try("npm", "install", *quiet, "--prefix", str(NODE), *wanted)


def _install_dramatiq() -> None:
    note(f"installing Dramatiq from the package index into {DRAMATIQ.relative_to(ROOT)} ...")
    if _try(sys.executable, "-m", "venv", str(DRAMATIQ)):
        _try(str(DRAMATIQ / "bin" / "pip"), "install", "--quiet", "dramatiq[redis]==2.2.1", "hiredis")


def _try(*command: str) -> bool:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        note(f"{' '.join(command)}: not within 180 s; going on without")
        return False
    if ended.returncode:
        note(f"{' '.join(command)}: {ended.stderr[-500:]}; going on without")
    return ended.returncode == 0
