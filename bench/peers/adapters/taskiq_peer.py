import asyncio
import os
import sys

from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

import jobs

URL = os.environ["BENCH_URL"]
KIND = os.environ.get("BENCH_TASKIQ", "stream")
broker = (RedisStreamBroker if KIND == "stream" else ListQueueBroker)(URL).with_result_backend(
    RedisAsyncResultBackend(URL, result_ex_time=300)
)
TASKS = {
    n: broker.register_task(f, task_name=n)
    for n, f in (("noop", jobs.anoop), ("late", jobs.alate), ("crash", jobs.acrash))
}


class Peer:
    chunk = 200

    def __init__(self, url, opts):
        pass

    async def open(self):
        await broker.startup()

    async def close(self):
        await broker.shutdown()

    async def add(self, name, kw, delay=None):
        if delay:
            raise NotImplementedError("taskiq delays need a separate scheduler process")
        return await TASKS[name].kiq(**kw)

    async def add_bulk(self, name, kws):  # no bulk call: gather
        await asyncio.gather(*(TASKS[name].kiq(**kw) for kw in kws))

    async def result(self, task):
        return (await task.wait_result(check_interval=0.001, timeout=30)).return_value


def work(url, opts):
    here = os.path.dirname(os.path.abspath(__file__))
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.path.dirname(here)])
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-m",
            "taskiq",
            "worker",
            "taskiq_peer:broker",
            "-w",
            "1",
            "--max-async-tasks",
            str(opts["concurrency"]),
            "--log-level",
            "ERROR",
            "--no-parse",
            "--max-prefetch",
            str(opts.get("prefetch", 0)),
        ],
    )
