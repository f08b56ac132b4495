"""The raw server as an anchor: a perfect client of a queue that keeps no promise but order.

Every request is encoded before the clock starts, one is in flight, and nothing is read of a reply but its length.
Over loopback TCP, as its references were measured (results/baseline.md, "Physical limit", evalsha100 and evalsha).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.machine import main_thread_ns
from skep.store.transport import pack
from skep.testing import Server

BATCHED_PER_S = 777_665
ONE_BY_ONE_PER_S = 19_578
LIFE_US = 3.3
"""What it did when the targets were set."""

JOBS, SINGLES, BATCH = 100_000, 4_000, 100
PAYLOAD = '{"x":2,"y":3}'
KEYS = ("q:jobs", "q:wait", "q:act")
ADD = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) redis.call('LPUSH', KEYS[2], ARGV[1]) return 1"
ADD_100 = (
    "redis.call('HSET', KEYS[1], unpack(ARGV)) local t = {} "
    "for k = 1, #ARGV, 2 do t[#t + 1] = ARGV[k] end redis.call('LPUSH', KEYS[2], unpack(t)) return 1"
)
TAKE_100 = (
    "local t = redis.call('RPOP', KEYS[2], ARGV[1]) if not t then return 0 end local z = {} "
    "for k = 1, #t do z[2 * k - 1] = ARGV[2] z[2 * k] = t[k] end redis.call('ZADD', KEYS[3], unpack(z)) "
    "return { t, redis.call('HMGET', KEYS[1], unpack(t)) }"
)
END_100 = "redis.call('ZREM', KEYS[3], unpack(ARGV)) redis.call('HDEL', KEYS[1], unpack(ARGV)) return 1"


@dataclass(frozen=True, slots=True)
class Raw:
    """One pass: jobs enqueued a second in batches and one by one, and server time of a job's whole life."""

    batched: float
    one_by_one: float
    life_us: float


def measure() -> Raw:
    """One pass, on a server of its own."""
    with Server(port=0) as server, server.client() as client:
        add, add_100, take_100, end_100 = (client.script_load(text) for text in (ADD, ADD_100, TAKE_100, END_100))
        ids = [f"{number:08d}" for number in range(JOBS)]
        chunks = [ids[first : first + BATCH] for first in range(0, JOBS, BATCH)]
        taken = len(b"*2\r\n") + 2 * len(b"*100\r\n") + BATCH * (len("$8\r\n00000000\r\n") + 7 + len(PAYLOAD))
        with socket.create_connection(("127.0.0.1", server.port or 0)) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            before = main_thread_ns(server.pid)
            adds = [_call(add_100, *(word for id in chunk for word in (id, PAYLOAD))) for chunk in chunks]
            enqueue = _push(line, adds, 4)
            _push(line, [_call(take_100, BATCH, 1_700_000_000)] * len(chunks), taken)
            _push(line, [_call(end_100, *chunk) for chunk in chunks], 4)
            life = main_thread_ns(server.pid) - before
            assert client.exists(*KEYS) == 0, "every job of the pass must have gone its whole way"
            single = _push(line, [_call(add, id, PAYLOAD) for id in ids[:SINGLES]], 4)
    return Raw(JOBS / enqueue, SINGLES / single, life / JOBS / 1000)


def _call(sha: object, *args: str | int) -> bytes:
    return pack(("EVALSHA", str(sha), len(KEYS), *KEYS, *args))


def _push(line: socket.socket, requests: Sequence[bytes], reply: int) -> float:
    """Sends one after another; seconds used."""
    view = memoryview(bytearray(1 << 20))
    began = time.perf_counter()
    for request in requests:
        line.sendall(request)
        left = reply
        while left > 0:
            got = line.recv_into(view, left)
            if not got:
                raise ConnectionError("the raw server closed the connection")
            left -= got
    return time.perf_counter() - began
