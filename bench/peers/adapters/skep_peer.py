import jobs
from skep import AsyncQueue, Worker


def make(url, opts):
    """The queue with the three jobs as tasks: plain functions (run in threads) or, by default, async ones."""
    q = AsyncQueue("bench", url)
    prefix = "" if opts.get("threads") else "a"
    return q, {name: q.task(name)(getattr(jobs, prefix + name)) for name in ("noop", "late", "crash")}


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        self.q, self.tasks = make(url, opts)

    async def open(self):
        await self.q.counts()  # the first operation connects

    async def close(self):  # the driver ends the process
        pass

    async def add(self, name, kw, delay=None):
        task = self.tasks[name]
        return await (task.options(delay=delay) if delay else task).enqueue(**kw)

    async def add_bulk(self, name, kws):
        await self.q.add_many(kws, task=name)

    async def result(self, job):
        return await job.result(timeout=30)


def work(url, opts):
    Worker(make(url, opts)[0], concurrency=opts["concurrency"]).run()
