import os
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

import jobs

URL = os.environ["BENCH_URL"]
broker = RedisBroker(url=URL)
RESULTS = os.environ.get("BENCH_RESULTS", "1") == "1"
if RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)
EXTRA = {"store_results": True} if RESULTS else {}
ACTORS = {n: dramatiq.actor(getattr(jobs, n), **EXTRA) for n in ("noop", "late", "crash")}


class Peer:
    chunk = 1000

    def __init__(self, url, opts):
        pass

    def open(self):
        pass

    def close(self):
        broker.close()

    def add(self, name, kw, delay=None):
        return ACTORS[name].send_with_options(kwargs=kw, delay=delay * 1000 if delay else None)

    def add_bulk(self, name, kws):  # documented: no bulk call for Redis; a plain loop
        actor = ACTORS[name]
        for kw in kws:
            actor.send(**kw)

    def result(self, msg):
        return msg.get_result(block=True, timeout=30000)


def work(url, opts):
    here = os.path.dirname(os.path.abspath(__file__))
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.path.dirname(here)])
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-m",
            "dramatiq",
            "dramatiq_peer",
            "-p",
            str(opts.get("procs", 1)),
            "-t",
            str(opts["concurrency"]),
            "--skip-logging",
        ],
    )
