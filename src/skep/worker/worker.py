"""The worker as users hold it: runs the jobs of its queues, alone in a process or beside other code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from skep.errors import InvalidOption, ServerUnavailable
from skep.worker.every import FIRST_REST, LONGEST_REST
from skep.worker.executors.source import refuse_while_importing
from skep.worker.hooks import Hooks, check_kind
from skep.worker.lifespan import Lifespan
from skep.worker.litter import rare_looks
from skep.worker.middleware import Middleware
from skep.worker.options import WorkerOptions
from skep.worker.runtime import Runtime
from skep.worker.served import Served
from skep.worker.signals import on_signals
from skep.worker.tether import Tether, tether

log = logging.getLogger("skep.worker")

F = TypeVar("F", bound=Callable[..., Any])


class Worker:
    """Runs the jobs of these queues.

    `run()` blocks until SIGTERM or SIGINT, `await serve()` until `stop()`. As a context manager it runs beside your
    code, `with` in a thread of its own, `async with` on the running loop: ready on entry, drained on exit.

        with Worker(mail):
            print(welcome.enqueue(42).result(timeout=10))
    """

    def __init__(
        self,
        *queues: Served,
        concurrency: int = 10,
        executor: str | None = None,
        lease: float | timedelta = 30,
        grace: float | timedelta = 25,
        burst: bool = False,
        middleware: Sequence[Middleware] = (),
        log_level: int = logging.DEBUG,
        max_jobs_per_child: int | None = None,
        max_rss: int | None = None,
    ) -> None:
        """`WorkerOptions` explains each option."""
        if not queues:
            raise InvalidOption("queues", queues, "at least one queue, such as Worker(mail)")
        self.queues = queues
        self.options = WorkerOptions(
            concurrency=concurrency,
            executor=executor,
            lease=lease,
            grace=grace,
            burst=burst,
            middleware=middleware,
            log_level=log_level,
            max_jobs_per_child=max_jobs_per_child,
            max_rss=max_rss,
        )
        self._hooks = Hooks()
        self._lifespan: Lifespan | None = None
        self._runtime: Runtime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._paused = False
        self._tether: Tether | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        names = ", ".join(repr(queue.name) for queue in self.queues)
        return f"<Worker of {names}, concurrency={self.options.concurrency}>"

    def on(self, kind: str) -> Callable[[F], F]:
        """Calls a function for what happens in this worker: "ready", "started", "progress", "succeeded", "retrying",
        "failed", "stalled", "returned", "cancelled" or "error". It gets a `WorkerEvent`.
        """

        check_kind(kind)

        def add(hook: F) -> F:
            self._hooks.add(kind, hook)
            return hook

        return add

    def lifespan(self, function: F) -> F:
        """A context manager that lasts as long as the worker; what it gives is `skep.current_job().state`."""
        self._lifespan = function
        return function

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, finishes for `grace`, hands the rest back; at a second signal, at once."""
        self._tether = tether()
        with rare_looks(), asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._run())

    async def serve(self) -> None:
        """Serves on the running loop until `stop()`, or until a burst is over. It handles no signals."""
        async with self:
            await self._until_over()

    def stop(self) -> None:
        """Takes nothing more, finishes for `grace`, and hands the rest back. From any thread."""
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stopping.set)

    def pause(self) -> None:
        """Takes nothing more, for now; what runs goes on, and other workers are not touched. From any thread."""
        self._paused = True
        self._call(lambda runtime: runtime.pause())

    def resume(self) -> None:
        """Takes jobs again."""
        self._paused = False
        self._call(lambda runtime: runtime.resume())

    async def __aenter__(self) -> Self:
        await self._start(owns_process=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def __enter__(self) -> Self:
        refuse_while_importing()
        ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        thread = threading.Thread(target=self._run_beside, args=(ready,), name="skep-worker", daemon=True)
        thread.start()
        try:
            ready.result()
        except BaseException:
            # Where it could not start, its thread has ended by itself; an interrupt may come while it starts.
            if not ready.done():
                self.stop()
            thread.join()
            raise
        self._thread = thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _run_beside(self, ready: concurrent.futures.Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._serve_beside(ready))
        except BaseException as error:  # a thread has nobody to raise it to
            if ready.done():
                log.exception("the worker has ended with an error")
            else:
                ready.set_exception(error)

    async def _serve_beside(self, ready: concurrent.futures.Future[None]) -> None:
        async with self:
            ready.set_result(None)
            await self._until_over()

    async def _run(self) -> None:
        stopping, loop = self._prepare(), asyncio.get_running_loop()
        if self._tether is not None:
            self._tether.watch(lambda: loop.call_soon_threadsafe(self._abandoned))
        with on_signals(stopping.set, self._hurry):
            await self._start_patiently(stopping)
            if self._runtime is not None:
                await self._until_over()
                await self._end()

    async def _start_patiently(self, stopping: asyncio.Event) -> None:
        """A worker that comes up before its server waits for it."""
        rest = FIRST_REST
        while not stopping.is_set():
            try:
                await self._start(owns_process=True)
            except ServerUnavailable as error:
                log.warning("%s; it is tried again", error)
            else:
                return
            rest = min(LONGEST_REST, rest * 2)
            await _first(stopping.wait(), asyncio.sleep(rest))

    async def _start(self, *, owns_process: bool) -> None:
        if self._runtime is not None:
            raise InvalidOption("worker", self, "one use at a time: this one serves already")
        refuse_while_importing()
        self._prepare()
        runtime = Runtime(
            self.queues,
            self.options,
            self._hooks,
            self._lifespan,
            owns_process=owns_process,
            tether=self._tether if owns_process else None,
        )
        await runtime.start()
        self._runtime = runtime
        if self._paused:
            runtime.pause()

    def _prepare(self) -> asyncio.Event:
        if self._stopping is None:
            self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        return self._stopping

    async def _until_over(self) -> None:
        stopping, runtime = self._prepare(), self._runtime
        if self.options.burst and runtime is not None:
            await _first(stopping.wait(), runtime.until_done())
        else:
            await stopping.wait()

    async def _end(self) -> None:
        runtime = self._runtime
        try:
            if runtime is not None:
                await runtime.stop()
        finally:
            self._runtime = self._loop = self._stopping = None

    def _abandoned(self) -> None:
        log.error("the supervisor is gone: this worker ends")
        if self._stopping is not None:
            self._stopping.set()
        self._hurry()

    def _hurry(self) -> None:
        if self._runtime is not None:
            self._runtime.hurry()

    def _call(self, act: Callable[[Runtime], None]) -> None:
        """On the loop that it serves on; where it serves on none, there is nothing to do."""
        loop, runtime = self._loop, self._runtime
        if loop is not None and runtime is not None and not loop.is_closed():
            loop.call_soon_threadsafe(act, runtime)


async def _first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Returns when the first of them does."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    for task in done:
        task.result()


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop: uvloop's where it can be had, for about a quarter more jobs a second."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
