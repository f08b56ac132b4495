from contextlib import AsyncExitStack
from datetime import timedelta

from streaq import Worker

import jobs


def make(url, opts):
    kw = {"anyio_kwargs": {"use_uvloop": True}} if opts.get("uvloop") else {}
    if opts.get("prefetch"):
        kw["prefetch"] = opts["prefetch"]
    w = Worker(redis_url=url, concurrency=opts.get("concurrency", 16), **kw)
    fns = {
        n: w.task(name=n, silent=True)(f)
        for n, f in (("noop", jobs.anoop), ("late", jobs.alate), ("crash", jobs.acrash))
    }
    return w, fns


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        self.w, self.fns = make(url, opts)

    async def open(self):
        self.stack = AsyncExitStack()
        await self.stack.enter_async_context(self.w)

    async def close(self):
        await self.stack.aclose()

    async def add(self, name, kw, delay=None):
        task = self.fns[name].enqueue(**kw)
        return await (task.start(delay=timedelta(seconds=delay)) if delay else task)

    async def add_bulk(self, name, kws):
        fn = self.fns[name]
        await self.w.enqueue_many([fn.enqueue(**kw) for kw in kws])

    async def result(self, task):
        return (await task.result(timeout=30)).result


def work(url, opts):
    make(url, opts)[0].run_sync()
