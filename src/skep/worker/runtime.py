"""A worker at work: all its parts, started and stopped in their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from skep import lifecycle, views
from skep.core.call import Arg
from skep.core.record import pack
from skep.errors import SkepError
from skep.store import checks
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.worker import schedules
from skep.worker.bench import Bench
from skep.worker.every import Every
from skep.worker.fetch import Fetch
from skep.worker.hooks import Hooks, WorkerEvent
from skep.worker.lease import Renewer
from skep.worker.lifespan import Lifespan, enter
from skep.worker.options import WorkerOptions
from skep.worker.served import Served
from skep.worker.station import Station
from skep.worker.tether import Tether
from skep.worker.upkeep import Upkeep
from skep.worker.watchdog import Watchdog

log = logging.getLogger("skep.worker")

LAST_WORDS = 5.0
"""Seconds for which a stopping worker waits for runs that were told to end, and for a server that does not answer."""

LOOK = 0.2
"""Seconds between two looks at whether a burst is over."""

SETTINGS_REST = 5.0
"""Seconds between two looks at the settings of a queue."""

LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}


class Runtime:
    """Serves from `start` to `stop`. `owns_process`: nobody else needs it, so that a watchdog may end it."""

    def __init__(
        self,
        queues: Sequence[Served],
        options: WorkerOptions,
        hooks: Hooks,
        lifespan: Lifespan | None,
        *,
        owns_process: bool,
        tether: Tether | None = None,
    ) -> None:
        self._queues = queues
        self._options = options
        self._hooks = hooks
        self._lifespan = lifespan
        self._owns_process = owns_process
        self._tether = tether
        self._loop = asyncio.get_running_loop()
        self._bench = Bench(options, hooks)
        self._bench.processes.lifespan = lifespan
        self._stations: list[Station] = []
        self._fetches: list[Fetch] = []
        self._upkeeps: list[Upkeep] = []
        self._claiming: list[Every] = []
        self._renewers: list[Renewer] = []
        self._watchdog: Watchdog | None = None
        self._stores: list[tuple[Connection, AsyncStore]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._hurry = asyncio.Event()
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Returns when it serves; what has begun is undone where it cannot."""
        try:
            self._bench.state = await enter(self._stack, self._lifespan)
            for queue in self._queues:
                await self._open(queue)
            self._begin()
        except BaseException:
            await self._close()
            raise
        names = ", ".join(station.queue for station in self._stations)
        log.info("ready: serves %s with %d slots", names, self._options.concurrency)
        self._hooks.tell(WorkerEvent("ready"))

    async def stop(self) -> None:
        """Takes nothing more, lets runs finish within the grace, hands the rest back, and leaves."""
        try:
            await self._drain()
        finally:
            await self._close()

    def hurry(self) -> None:
        """The grace is over."""
        self._hurry.set()

    def pause(self) -> None:
        """Takes nothing more, for now."""
        for fetch in self._fetches:
            fetch.pause()

    def resume(self) -> None:
        """Takes jobs again."""
        for fetch in self._fetches:
            fetch.resume()

    async def until_done(self) -> None:
        """Returns when nothing is waiting, active or retrying in any of its queues."""
        done = asyncio.Event()

        async def look() -> None:
            if await self._is_done():
                done.set()

        looking = self._loop.create_task(Every(LOOK, look).run())
        try:
            await done.wait()
        finally:
            await _cancelled([looking])

    # Its beginning.

    async def _open(self, served: Served) -> None:
        store = await self._store_of(served.connection)
        station = Station(served, self._bench, store)
        if self._tether is not None:
            tell, keys, connection = self._tether.tell, served.keys, served.connection
            station.joined = lambda worker, left: tell(keys, connection, worker, left=left)
        own = await enter(self._stack, served.registry.lifespan)
        if own is not None:
            station.state = own
        settings = settings_of(served)
        if settings:
            await store.send(lifecycle.configure(served.keys, settings))
        await schedules.write(store, served)
        await station.join()
        self._stations.append(station)

    async def _store_of(self, connection: Connection) -> AsyncStore:
        for known, store in self._stores:
            if known == connection:
                return store
        store = AsyncStore(connection)
        self._stores.append((connection, store))
        findings = await store.check()
        for finding in findings:
            log.log(LEVELS[finding.level], "%s: %s", connection.safe_url, finding.text)
        checks.demand(findings)
        return store

    def _begin(self) -> None:
        for station in self._stations:
            fetch, upkeep = Fetch(station, self._bench.slots), Upkeep(station)
            station.poke, station.upkeep = fetch.wake, upkeep.tell
            self._fetches.append(fetch)
            self._upkeeps.append(upkeep)
            self._claiming.append(self._every(station, 0, fetch.run_once))
            self._every(station, 0, fetch.listen_once)
            self._every(station, 0, upkeep.run_when_wanted)
            self._every(station, self._options.lease_ms / 6000, upkeep.run_once)
            self._every(station, SETTINGS_REST, station.read_settings)
        if self._owns_process:
            self._watchdog = Watchdog(self._stations, self._options.lease_ms / 1000)
        for connection, store in self._stores:
            there = [station for station in self._stations if station.store is store]
            renewer = Renewer(connection, there, self._bench, self._watchdog)
            renewer.start()
            self._renewers.append(renewer)

    def _every(self, station: Station, interval: float, run_once: Callable[[], Awaitable[object]]) -> Every:
        every = Every(interval, run_once, trouble=station.trouble)
        self._tasks.append(self._loop.create_task(every.run()))
        return every

    # Its end.

    async def _drain(self) -> None:
        self.pause()
        slots = self._bench.slots
        log.info("stopping: %d runs may go on for %g s", len(self._bench.runs), self._options.grace_s)
        # A claim under way is waited for, and its runs are run; one for nothing then tells what others must be told of.
        await _within(LAST_WORDS, asyncio.gather(*(every.passed() for every in self._claiming)))
        if not await self._is_empty(self._options.grace_s):
            for station in self._stations:
                station.hand_back()
            await _within(LAST_WORDS, slots.all_free())
        await _within(LAST_WORDS, asyncio.gather(*(station.all_said() for station in self._stations)))

    async def _is_empty(self, grace: float) -> bool:
        """Whether all runs have ended by the end of the grace."""
        ended = asyncio.ensure_future(self._bench.slots.all_free())
        hurried = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((ended, hurried), timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        await _cancelled((hurried,) if ended.done() else (ended, hurried))
        return ended.done() and not ended.cancelled()

    async def _close(self) -> None:
        await _cancelled(self._tasks)
        for renewer in self._renewers:
            await renewer.stop()
        if self._watchdog is not None:
            self._watchdog.stop()
        for station in self._stations:
            await self._leave(station)
        for _, store in self._stores:
            await store.close()
        await self._bench.close()
        await self._stack.aclose()
        log.info("stopped")

    async def _leave(self, station: Station) -> None:
        """Unless something still runs there: then the lease must end first, or the job would run twice."""
        left = station.running()
        if left:
            log.error("%s: %s cannot be ended: it waits again when the lease is over", station.queue, left)
            return
        try:
            await _within(LAST_WORDS, station.leave())
        except SkepError as error:
            log.warning("%s: this worker could not sign off: %s", station.queue, error)

    async def _is_busy(self, station: Station) -> bool:
        counts = await station.store.send(views.counts(station.keys))
        if counts.active or not counts.waiting + counts.retrying:
            return counts.active > 0
        return "paused" not in await station.store.send(views.settings(station.keys))

    async def _is_done(self) -> bool:
        if self._bench.runs:
            return False
        for station, upkeep in zip(self._stations, self._upkeeps, strict=True):
            try:
                await upkeep.run_once()
                if await self._is_busy(station):
                    return False
            except SkepError as error:
                station.trouble(error)
                return False
        return True


def settings_of(served: Served) -> dict[str, Arg]:
    """What the server is told of a queue when a worker starts: what is named in code, and who has failure handlers."""
    settings = dict(served.settings_in_code)
    failure_tasks = served.registry.failure_tasks()
    if failure_tasks:
        settings["on_failure"] = pack(dict(sorted(failure_tasks.items())))
    return settings


async def _within(seconds: float, work: Awaitable[Any]) -> None:
    """Waits for it, but not longer."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        pass


async def _cancelled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Ends these tasks."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
