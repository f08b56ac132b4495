"""Running jobs: worker processes as users start them, watched from outside."""

from __future__ import annotations

import asyncio
import json
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import IO, Any

import uvloop

from bench.anchor import Anchor
from bench.engine import payload
from bench.machine import ROOT, main_thread_ns, note, process_ns, quantile
from bench.serve import QUEUE
from bench.target import Target, capped, figure
from skep import AsyncQueue, Queue
from skep.testing import Server

PATIENCE = 60.0
JOBS = 100_000
PROTOTYPE = 150_000


class Workers:
    """Worker processes, each ready when it is here; `told` is what each said when it ended."""

    def __init__(self, server: Server, processes: int, concurrency: int) -> None:
        command = [sys.executable, "-m", "bench.serve", server.url, str(concurrency)]
        self._processes = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(processes)
        ]
        self.told: list[dict[str, Any]] = []
        try:
            for process in self._processes:
                assert _line(process.stdout) == "ready", "a worker must come up"
        except BaseException:
            self.stop()
            raise

    def spent_ns(self) -> int:
        """Processor time of all of them, so far."""
        return sum(process_ns(process.pid) for process in self._processes)

    def stop(self) -> None:
        """As a service manager would; what each says is told."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            said, _ = process.communicate(timeout=PATIENCE)
            self.told += [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        self._processes = []


def _line(output: IO[str] | None) -> str:
    assert output is not None, "it is a pipe"
    ready, _, _ = select.select([output], [], [], PATIENCE)
    return output.readline().strip() if ready else ""


@contextmanager
def workers(server: Server, processes: int = 1, concurrency: int = 10) -> Generator[Workers]:
    """So many worker processes."""
    started = Workers(server, processes, concurrency)
    try:
        yield started
    finally:
        started.stop()


@dataclass(frozen=True, slots=True)
class Drain:
    """Jobs a second, processor time per job, and how many the lesser of the processes did of its fair share."""

    rate: float
    worker_us: float
    server_us: float
    fairness: float

    def __str__(self) -> str:
        return f"worker {figure(self.worker_us)}, server {figure(self.server_us)} us a job"


def drained(processes: int, concurrency: int, task: str = "noop", jobs: int = JOBS) -> Drain:
    """Workers that are up already, a queue that is paused and full: the clock runs from `resume` to the last end.

    Over loopback TCP, as the other queues: bee-queue drains a third faster over a unix socket, skep as fast as here.
    """
    with Server(port=0) as server, Queue(QUEUE, server.url) as queue:
        queue.pause()
        queue.add_many(repeat(payload(), jobs), task=task)
        with workers(server, processes, concurrency) as started:
            spent, served = started.spent_ns(), main_thread_ns(server.pid)
            began = time.perf_counter()
            queue.resume()
            while queue.counts().succeeded < jobs:
                if time.perf_counter() - began > PATIENCE:
                    raise TimeoutError(f"not drained within {PATIENCE:g} s: {queue.counts()}")
                time.sleep(0.005)
            took = time.perf_counter() - began
            spent, served = started.spent_ns() - spent, main_thread_ns(server.pid) - served
        counts = [told["runs"] for told in started.told]
    return Drain(jobs / took, spent / jobs / 1000, served / jobs / 1000, 100 * min(counts) * processes / jobs)


def drains(anchor: Anchor, *, quick: bool) -> list[Target]:
    """Empty handlers, as fast as they go."""
    kinds: dict[str, tuple[int, int, str, int]] = {
        "1 process": (1, 100, "noop", JOBS),
        "2 processes": (2, 100, "noop", JOBS),
        "threads": (1, 100, "plain", JOBS // 2),
    }
    beside: dict[str, tuple[int, int, str, int]] = {
        "10": (1, 10, "noop", JOBS // 2),
        "200": (1, 200, "noop", JOBS),
        "threads 10": (1, 10, "plain", JOBS // 4),
    }
    passes: dict[str, list[Drain]] = {}
    for nth in range(2 if quick else 5):
        note(f"drains, pass {nth + 1}")
        anchor.measure_raw()
        anchor.measure_drains()
        for name, kind in (kinds | beside if nth < 2 else kinds).items():
            passes.setdefault(name, []).append(drained(*kind))
    best = {name: max(each, key=_rate) for name, each in passes.items()}
    return [_one(anchor, best), *_two(best), *_elsewhere(anchor, best)]


def _rate(drain: Drain) -> float:
    return drain.rate


def _one(anchor: Anchor, best: dict[str, Drain]) -> Target:
    peers = anchor.best_drain()
    if peers is not None:
        scale, by, said = capped(5 * peers[0] / PROTOTYPE), "5 x the best other queue", peers[1] + "; "
    else:
        (scale, by), said = anchor.runs(), ""
    one = best["1 process"]
    return Target(
        part="worker",
        name="drain, 1 process, concurrency 100",
        goal=PROTOTYPE,
        unit="jobs/s",
        value=one.rate,
        scale=scale,
        scaled_by=by,
        note=f"{said}{one}; concurrency 10: {figure(best['10'].rate)}, 200: {figure(best['200'].rate)}",
    )


def _two(best: dict[str, Drain]) -> list[Target]:
    one, two = best["1 process"], best["2 processes"]
    return [
        Target(
            part="worker",
            name="drain, 2 processes, of what 1 did",
            goal=75,
            unit="%",
            value=100 * two.rate / one.rate,
            note=f"{figure(two.rate)} jobs/s; {two}",
        ),
        Target(
            part="worker",
            name="the lesser of 2 processes, of its half",
            goal=50,
            unit="%",
            value=two.fairness,
            note="no starvation between them",
        ),
    ]


def _elsewhere(anchor: Anchor, best: dict[str, Drain]) -> list[Target]:
    scale, by = anchor.runs()
    threads = best["threads"]
    return [
        Target(
            part="worker",
            name="def handler in threads, concurrency 100",
            goal=40_000,
            unit="jobs/s",
            value=threads.rate,
            scale=scale,
            scaled_by=by,
            note=f"{threads}; concurrency 10: {figure(best['threads 10'].rate)}",
        ),
        Target(
            part="worker",
            name="process executor",
            goal=15_000,
            unit="jobs/s",
            value=None,
            scale=scale,
            scaled_by=by,
            note="not built yet",
        ),
    ]


def latencies(anchor: Anchor, *, quick: bool) -> list[Target]:
    """How long a job takes to begin, and to answer, when there is nothing else to do."""
    asynchronous: list[float] = []
    blocking: list[float] = []
    for nth in range(2 if quick else 4):
        note(f"latencies, pass {nth + 1}")
        anchor.measure_raw()
        with Server() as server, workers(server):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                asynchronous += runner.run(_round_trips(server, 500))
            blocking += _blocking_round_trips(server, 500)
        anchor.measure_round_trips()
    note("latencies, delayed jobs")
    late = _late(50 if quick else 150)
    scale, by = anchor.trips()
    beside = f"bee-queue {_middle(anchor.round_trips)} ms; " if anchor.round_trips else ""
    told = {
        "round trip, asynchronous caller": (asynchronous, 0.6, 3.0, beside),
        "round trip, blocking caller": (blocking, 0.6, 3.0, beside),
        "lateness of a job delayed by 1 s": (late, 10.0, 50.0, ""),
    }
    return [
        Target(
            part="worker",
            name=f"{name}, {which}",
            goal=goal,
            unit="ms",
            value=quantile(values, share),
            at_most=True,
            scale=scale,
            scaled_by=by,
            note=f"{said}{len(values)} of them",
        )
        for name, (values, middle, tail, said) in told.items()
        for which, share, goal in (("p50", 0.5, middle), ("p99", 0.99, tail))
    ]


def _middle(values: list[float]) -> str:
    return f"{figure(quantile(values, 0.5))} / {figure(quantile(values, 0.99))}"


async def _round_trips(server: Server, count: int) -> list[float]:
    took: list[float] = []
    async with AsyncQueue(QUEUE, server.url) as queue:
        for nth in range(count + 20):
            began = time.perf_counter()
            job = await queue.add(payload(), task="noop")
            await job.result(timeout=PATIENCE)
            if nth >= 20:
                took.append((time.perf_counter() - began) * 1000)
    return took


def _blocking_round_trips(server: Server, count: int) -> list[float]:
    took: list[float] = []
    with Queue(QUEUE, server.url) as queue:
        for nth in range(count + 20):
            began = time.perf_counter()
            queue.add(payload(), task="noop").result(timeout=PATIENCE)
            if nth >= 20:
                took.append((time.perf_counter() - began) * 1000)
    return took


def _late(count: int) -> list[float]:
    """Milliseconds from the due time to the handler, of jobs that come about one after another."""
    dice = random.Random(1)
    with Server() as server, Queue(QUEUE, server.url) as queue:
        with workers(server) as started:
            for _ in range(count):
                queue.add({"due": time.time() + 1}, task="delayed", delay=1)
                time.sleep(dice.uniform(0.02, 0.06))
            deadline = time.monotonic() + PATIENCE
            while queue.counts().succeeded < count and time.monotonic() < deadline:
                time.sleep(0.05)
        return [ms for told in started.told for ms in told["late"]]


def idle(anchor: Anchor, *, quick: bool) -> list[Target]:
    """What a worker costs that has nothing to do."""
    span = 6.0 if quick else 20.0
    anchor.measure_raw()
    with Server() as server, workers(server) as started:
        time.sleep(1.5)
        note(f"idle, for {span:g} s")
        spent = started.spent_ns()
        commands = _commands(server, span)
        spent = started.spent_ns() - spent
    scale, by = anchor.server()
    return [
        Target(
            part="worker",
            name="idle worker, of a core",
            goal=0.5,
            unit="%",
            value=100 * spent / (span * 1e9),
            at_most=True,
            scale=scale,
            scaled_by=by,
        ),
        Target(
            part="worker",
            name="idle worker, commands",
            goal=1,
            unit="a second",
            value=commands / span,
            at_most=True,
            note="those of scripts not counted",
        ),
    ]


def _commands(server: Server, span: float) -> int:
    """How many commands clients say within so many seconds."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(server.path)
        line.sendall(b"MONITOR\r\n")
        heard, deadline = b"", time.monotonic() + span
        while (left := deadline - time.monotonic()) > 0:
            line.settimeout(left)
            try:
                heard += line.recv(65_536)
            except TimeoutError:
                break
    said = [each for each in heard.splitlines() if each.startswith(b"+")]
    return sum(b" lua]" not in each.partition(b'"')[0] for each in said) - 1  # its own OK
