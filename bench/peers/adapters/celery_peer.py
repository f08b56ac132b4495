import os

from celery import Celery, group

import jobs

URL = os.environ["BENCH_URL"]
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
TASKS = {n: app.task(getattr(jobs, n), name=n) for n in ("noop", "late", "crash")}


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        self.ignore = bool(opts.get("ignore_result"))

    def open(self):
        pass

    def close(self):
        pass

    def add(self, name, kw, delay=None):
        return TASKS[name].apply_async(kwargs=kw, countdown=delay, ignore_result=self.ignore)

    def add_bulk(self, name, kws):
        if self.ignore:
            with app.producer_pool.acquire(block=True) as p:
                for kw in kws:
                    TASKS[name].apply_async(kwargs=kw, producer=p, ignore_result=True)
        else:
            group(TASKS[name].s(**kw) for kw in kws).apply_async()

    def result(self, res):
        return res.get(timeout=30)


def work(url, opts):
    app.conf.update(
        worker_prefetch_multiplier=opts.get("prefetch", 4),
        task_ignore_result=bool(opts.get("ignore_result")),
        task_acks_late=bool(opts.get("acks_late")),
    )
    app.worker_main(
        [
            "worker",
            "-P",
            opts.get("pool", "prefork"),
            "-c",
            str(opts["concurrency"]),
            "-l",
            "ERROR",
            "--without-gossip",
            "--without-mingle",
            "-n",
            f"w{os.getpid()}@bench",
        ]
    )
