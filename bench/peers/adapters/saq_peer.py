import asyncio

from saq import Queue, Worker

import jobs


async def noop(ctx, *, x, y):
    return await jobs.anoop(x, y)


async def late(ctx, *, due):
    return await jobs.alate(due)


async def crash(ctx, *, i, secs):
    return await jobs.acrash(i, secs)


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        # max_concurrent_ops is saq's own cap on parallel commands (default 20)
        self.q = Queue.from_url(url, max_concurrent_ops=opts.get("ops", 20))
        self.extra = {"retries": opts["retries"]} if "retries" in opts else {}

    async def open(self):
        await self.q.connect()

    async def close(self):
        await self.q.disconnect()

    async def add(self, name, kw, delay=None):
        import time

        if delay:
            return await self.q.enqueue(name, scheduled=time.time() + delay, **kw)
        return await self.q.enqueue(name, **kw, **self.extra)

    async def add_bulk(self, name, kws):  # saq has no bulk call: its docs gather
        await asyncio.gather(*(self.q.enqueue(name, **kw) for kw in kws))

    async def result(self, job):
        await job.refresh(until_complete=30)
        return job.result


def work(url, opts):
    async def main():
        q = Queue.from_url(url, max_concurrent_ops=max(20, opts["concurrency"]))
        await q.connect()
        kw = {"dequeue_timeout": 0}
        if "timers" in opts:
            kw["timers"] = opts["timers"]
        await Worker(q, functions=[noop, late, crash], concurrency=opts["concurrency"], **kw).start()

    asyncio.run(main())
