from datetime import timedelta

from redis import Redis
from rq import Queue, Retry

import jobs
import probe


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        self.r = Redis.from_url(url)
        self.q = Queue("bench", connection=self.r)
        self.retry = bool(opts.get("retry"))

    def open(self):
        self.r.ping()

    def close(self):
        self.r.close()

    def add(self, name, kw, delay=None):
        fn = getattr(jobs, name)
        if delay:
            return self.q.enqueue_in(timedelta(seconds=delay), fn, kwargs=kw)
        if self.retry:
            return self.q.enqueue_call(fn, kwargs=kw, retry=Retry(max=3))
        return self.q.enqueue_call(fn, kwargs=kw)

    def add_bulk(self, name, kws):
        fn = getattr(jobs, name)
        self.q.enqueue_many([Queue.prepare_data(fn, kwargs=kw) for kw in kws])

    def result(self, job):
        return job.latest_result(timeout=30).return_value


def work(url, opts):
    import logging

    from rq.worker import SimpleWorker, Worker

    logging.disable(logging.INFO)
    probe.prepare()
    cls = Worker if opts.get("fork") else SimpleWorker
    r = Redis.from_url(url)
    w = cls([Queue("bench", connection=r)], connection=r, log_job_description=False)
    w.work(with_scheduler=True, logging_level="WARNING")
