"""A worker of the benchmark: `python -m bench.serve URL CONCURRENCY`. It says when it is ready, and what it did."""

from __future__ import annotations

import json
import logging
import sys
import time

from skep import Queue, Worker
from skep.worker.hooks import WorkerEvent

QUEUE = "bench"
TIMEOUT = 60


class Handlers:
    """The handlers of one worker process, and what they saw."""

    def __init__(self, url: str) -> None:
        self.queue = Queue(QUEUE, url)
        self.runs = 0
        self.late: list[float] = []
        for handler in (self.noop, self.plain, self.delayed):
            self.queue.task(handler.__name__, timeout=TIMEOUT)(handler)

    async def noop(self, x: int, y: int) -> int:
        self.runs += 1
        return x + y

    def plain(self, x: int, y: int) -> int:
        return x + y

    async def delayed(self, due: float) -> None:
        self.late.append((time.time() - due) * 1000)


def main(url: str, concurrency: int) -> None:
    logging.basicConfig(level=logging.ERROR)  # that nothing is kept on disk is meant so
    handlers = Handlers(url)
    worker = Worker(handlers.queue, concurrency=concurrency)

    @worker.on("ready")
    def ready(_: WorkerEvent) -> None:
        print("ready", flush=True)

    worker.run()
    print(json.dumps({"runs": handlers.runs, "late": handlers.late}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
