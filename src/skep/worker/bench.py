"""What all queues of a worker share: slots, executors, deadlines, hooks, and the runs that are on."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from skep.worker.attempt import Attempt
from skep.worker.deadlines import Deadlines
from skep.worker.executors.base import Executor
from skep.worker.executors.loop import LoopExecutor
from skep.worker.executors.processes import ProcessExecutor
from skep.worker.executors.threads import ThreadExecutor
from skep.worker.hooks import Hooks, WorkerEvent
from skep.worker.options import WorkerOptions
from skep.worker.slots import Slots
from skep.worker.tell import Teller


class Bench:
    """Made on the worker's loop, for as long as it serves."""

    def __init__(self, options: WorkerOptions, hooks: Hooks) -> None:
        self.options = options
        self.hooks = hooks
        self.loop = asyncio.get_running_loop()
        self.slots = Slots(options.concurrency)
        self.runs: set[Attempt] = set()
        self.deadlines = Deadlines(self.runs)
        self.teller = Teller(hooks, options.log_level)
        self.state: Any = None
        threads = ThreadExecutor()
        self._threads = threads
        self._on_loop: Executor = LoopExecutor(options.middleware)
        self._in_threads: Executor = LoopExecutor(options.middleware, threads.call) if options.middleware else threads
        self.processes = processes = ProcessExecutor(options, self.deadlines.watch)
        self._in_processes: Executor = (
            LoopExecutor(options.middleware, processes.call) if options.middleware else processes
        )

    def launch(self, attempt: Attempt) -> None:
        """Begins a run."""
        timeout = attempt.rules.timeout
        if timeout is not None:
            attempt.deadline = deadline = monotonic() + timeout
            self.deadlines.watch(deadline)
        plan = attempt.plan
        if plan.source is not None:
            self._in_processes.start(attempt)
        else:
            (self._on_loop if plan.is_async else self._in_threads).start(attempt)
        if "started" in self.hooks.by_kind:
            self.hooks.tell(WorkerEvent("started", attempt.queue, attempt.job))

    def trouble(self, error: Exception, queue: str | None = None) -> None:
        """Something goes wrong in the worker itself."""
        self.hooks.tell(WorkerEvent("error", queue, trouble=error))

    async def close(self) -> None:
        """Nothing more is run."""
        self.deadlines.close()
        self._on_loop.close()
        self._threads.close()
        await self.processes.closed()
