import asyncio

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker

import jobs


async def noop(ctx, x, y):
    return await jobs.anoop(x, y)


async def late(ctx, due):
    return await jobs.alate(due)


async def crash(ctx, i, secs):
    return await jobs.acrash(i, secs)


class Peer:
    chunk = 200

    def __init__(self, url, opts):
        self.url, self.poll = url, opts.get("result_poll", 0.001)

    async def open(self):
        self.q = await create_pool(RedisSettings.from_dsn(self.url))

    async def close(self):
        await self.q.aclose()

    async def add(self, name, kw, delay=None):
        return await self.q.enqueue_job(name, _defer_by=delay, **kw)

    async def add_bulk(self, name, kws):  # arq has no bulk call: gather
        await asyncio.gather(*(self.q.enqueue_job(name, **kw) for kw in kws))

    async def result(self, job):
        return await job.result(poll_delay=self.poll)


def work(url, opts):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    kw = {k: opts[k] for k in ("poll_delay", "keep_result", "queue_read_limit") if k in opts}
    Worker(
        [func(noop), func(late), func(crash)],
        redis_settings=RedisSettings.from_dsn(url),
        max_jobs=opts["concurrency"],
        handle_signals=False,
        **kw,
    ).run()
