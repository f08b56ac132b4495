import asyncio

from bullmq import Queue, Worker

import jobs

FNS = {"noop": jobs.anoop, "late": jobs.alate, "crash": jobs.acrash}


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        self.url, self.waiting = url, {}

    async def open(self):
        self.q = Queue("bench", {"connection": self.url})
        self.ev = None

    async def close(self):
        await self.q.close()

    async def add(self, name, kw, delay=None):
        return await self.q.add(name, kw, {"delay": int(delay * 1000)} if delay else {})

    async def add_bulk(self, name, kws):
        await self.q.addBulk([{"name": name, "data": kw, "opts": {}} for kw in kws])

    async def result(self, job):  # the Python port has no waitUntilFinished: poll
        while True:
            if (
                await self.q.isJobInZSet("completed", job.id)
                if hasattr(self.q, "isJobInZSet")
                else await job.isCompleted()
            ):
                return True
            await asyncio.sleep(0)


def work(url, opts):
    async def main():
        async def process(job, token):
            return await FNS[job.name](**job.data)

        Worker("bench", process, {"connection": url, "concurrency": opts["concurrency"]})
        await asyncio.Event().wait()

    asyncio.run(main())
