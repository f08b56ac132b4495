"""Renews a worker's leases, from a thread with a connection of its own: busy handlers and a blocked loop cost no lease.

It pauses when the loop has hung for a whole lease, and no run that has a timeout and is within it explains that.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from skep import lifecycle
from skep.errors import SkepError
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.worker.bench import Bench
from skep.worker.station import Station
from skep.worker.watchdog import Watchdog

log = logging.getLogger("skep.worker")

MARGIN = 1 / 6
"""Of a lease, the part that is left when runs are stopped because it could not be renewed."""

SHORTEST_PATIENCE = 0.5
"""Seconds that a renewal waits for its answer at least."""


class Renewer:
    """The thread that renews at the queues of one server. `watchdog`: where the process is the worker's own."""

    def __init__(
        self, connection: Connection, stations: Sequence[Station], bench: Bench, watchdog: Watchdog | None
    ) -> None:
        self._lease = bench.options.lease_ms / 1000
        # A renewal that gets no answer must leave time for others within the lease.
        patience = min(connection.timeout, max(SHORTEST_PATIENCE, self._lease / 4))
        connects = min(connection.connect_timeout, patience)
        self._store = Store(replace(connection, timeout=patience, connect_timeout=connects, retry_for=0))
        self._stations = stations
        self._bench = bench
        self._watchdog = watchdog
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._ticked = monotonic()
        self._thread = threading.Thread(target=self._run, name="skep-lease", daemon=True)

    def start(self) -> None:
        """Begins to renew."""
        self._thread.start()

    async def stop(self) -> None:
        """Renews no more."""
        self._stop.set()
        self._store.close()
        await asyncio.to_thread(self._thread.join, self._lease)

    def run_once(self) -> None:
        """Renews at each queue once."""
        for station in self._stations:
            self._renew(station)
        if self._watchdog is not None:
            self._watchdog.renewed()

    def _run(self) -> None:
        while not self._stop.wait(self._bench.options.renew_s):
            if self._hangs():
                log.critical("the loop of this worker has hung for a whole lease: its leases end")
            else:
                self.run_once()
            self._post(self._tick)

    def _renew(self, station: Station) -> None:
        post = station.post
        if post is None:
            return
        answered, runs = post.snapshot()
        began, lease = monotonic(), self._bench.options.lease_ms
        call = lifecycle.renew(station.keys, post.name, lease=lease, answered=answered, runs=runs.items())
        try:
            reply = self._store.send(call)
        except SkepError as error:
            self._failed(station, error)
            return
        if reply is not None:
            post.until = began + self._lease
        self._post(station.renewed, post, runs, reply)

    def _failed(self, station: Station, error: SkepError) -> None:
        if self._stop.is_set():
            return
        log.warning("%s: the lease could not be renewed: %s", station.queue, error)
        self._post(station.trouble, error)
        post = station.post
        if post is not None and monotonic() > post.until - self._lease * MARGIN:
            self._post(station.silent, post)

    def _hangs(self) -> bool:
        now = monotonic()
        if now - self._ticked <= self._lease:
            return False
        return not any(run.deadline is not None and run.deadline > now for run in self._bench.runs.copy())

    def _tick(self) -> None:
        self._ticked = monotonic()
        if self._watchdog is not None and not self._bench.runs:
            self._watchdog.idle()

    def _post(self, act: Callable[..., object], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(act, *args)
        except RuntimeError:
            self._stop.set()  # the loop is closed: nobody is left to renew for
