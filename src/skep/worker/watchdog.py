"""Ends this process just before a lease ends, with every thread's stack in the log. It needs neither loop nor GIL."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Sequence
from time import monotonic

from skep.worker.station import Station

MARGIN = 1 / 12
"""Of a lease, the part that is left when the process is ended."""

AT_LEAST = 0.05


class Watchdog:
    """Every renewal sets it anew, and the loop while there is no run: a server that is away ends no idle worker."""

    def __init__(self, stations: Sequence[Station], lease: float) -> None:
        self._stations = stations
        self._lease = lease
        self._lock = threading.Lock()
        self._off = False

    def renewed(self) -> None:
        """It waits for the first lease to end."""
        posts = [station.post for station in self._stations]
        self._set(min((post.until for post in posts if post is not None), default=monotonic() + self._lease))

    def idle(self) -> None:
        """Nothing runs: it waits for a whole lease, whatever the server says."""
        self._set(monotonic() + self._lease)

    def stop(self) -> None:
        """It waits no more."""
        with self._lock:
            self._off = True
            faulthandler.cancel_dump_traceback_later()

    def _set(self, until: float) -> None:
        rest = max(AT_LEAST, until - monotonic() - self._lease * MARGIN)
        with self._lock:
            if not self._off:
                faulthandler.dump_traceback_later(rest, exit=True, file=2)
