import os

from huey import RedisHuey

import jobs

huey = RedisHuey("bench", url=os.environ["BENCH_URL"])
TASKS = {n: huey.task(name=n)(getattr(jobs, n)) for n in ("noop", "late", "crash")}


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        pass

    def open(self):
        pass

    def close(self):
        pass

    def add(self, name, kw, delay=None):
        return TASKS[name].schedule(kwargs=kw, delay=delay) if delay else TASKS[name](**kw)

    def add_bulk(self, name, kws):  # documented: no bulk call; a plain loop
        task = TASKS[name]
        for kw in kws:
            task(**kw)

    def result(self, res):
        return res.get(blocking=True, timeout=30, backoff=1.0, max_delay=0.001)


def work(url, opts):
    huey.create_consumer(workers=opts["concurrency"], worker_type=opts.get("kind", "thread"), periodic=False).run()
