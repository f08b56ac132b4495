"""Runs one role of one Python peer in that peer's own interpreter.

    python driver.py <adapter> <role> <n> <options as JSON>

Roles: one, bulk, roundtrip, delay, crash (producer side) and work (a worker that
runs until it is stopped). The producer roles print one line: RESULT {json}.
"""

import asyncio
import importlib
import inspect
import json
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "adapters")]
PAYLOAD = {"x": 2, "y": 3}


async def asyncly(peer, role, n, opts):
    await peer.open()
    out = {}
    limit = opts.get("limit", 15)
    clock = time.perf_counter
    if role == "one":
        done, t0 = 0, clock()
        while done < n and clock() - t0 < limit:
            await peer.add("noop", PAYLOAD)
            done += 1
        out = {"n": done, "secs": clock() - t0}
    elif role == "bulk":
        chunk, t0 = peer.chunk, clock()
        for i in range(0, n, chunk):
            await peer.add_bulk("noop", [dict(PAYLOAD) for _ in range(min(chunk, n - i))])
        out = {"n": n, "secs": clock() - t0}
    elif role == "roundtrip":
        for _ in range(20):
            await peer.result(await peer.add("noop", PAYLOAD))
        ms, t0 = [], clock()
        while len(ms) < n and clock() - t0 < limit:
            t = clock()
            await peer.result(await peer.add("noop", PAYLOAD))
            ms.append((clock() - t) * 1e3)
        out = {"ms": ms}
    elif role == "delay":
        for _ in range(n):
            await peer.add("late", {"due": time.time() + 1}, delay=1)
            await asyncio.sleep(random.uniform(0.02, 0.1))
        out = {"n": n}
    elif role == "crash":
        for i in range(n):
            await peer.add("crash", {"i": i, "secs": opts.get("secs", 5)})
        out = {"n": n}
    await peer.close()
    return out


def plainly(peer, role, n, opts):
    peer.open()
    out = {}
    limit = opts.get("limit", 15)
    clock = time.perf_counter
    if role == "one":
        done, t0 = 0, clock()
        while done < n and clock() - t0 < limit:
            peer.add("noop", PAYLOAD)
            done += 1
        out = {"n": done, "secs": clock() - t0}
    elif role == "bulk":
        chunk, t0 = peer.chunk, clock()
        for i in range(0, n, chunk):
            peer.add_bulk("noop", [dict(PAYLOAD) for _ in range(min(chunk, n - i))])
        out = {"n": n, "secs": clock() - t0}
    elif role == "roundtrip":
        for _ in range(20):
            peer.result(peer.add("noop", PAYLOAD))
        ms, t0 = [], clock()
        while len(ms) < n and clock() - t0 < limit:
            t = clock()
            peer.result(peer.add("noop", PAYLOAD))
            ms.append((clock() - t) * 1e3)
        out = {"ms": ms}
    elif role == "delay":
        for _ in range(n):
            peer.add("late", {"due": time.time() + 1}, delay=1)
            time.sleep(random.uniform(0.02, 0.1))
        out = {"n": n}
    elif role == "crash":
        for i in range(n):
            peer.add("crash", {"i": i, "secs": opts.get("secs", 5)})
        out = {"n": n}
    peer.close()
    return out


def main():
    adapter, role, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    opts = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    url = os.environ["BENCH_URL"]
    if opts.get("uvloop"):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    module = importlib.import_module(adapter)
    if role == "work":
        module.work(url, opts)
        return
    peer = module.Peer(url, opts)
    if inspect.iscoroutinefunction(peer.add):
        out = asyncio.run(asyncly(peer, role, n, opts))
    else:
        out = plainly(peer, role, n, opts)
    print("RESULT " + json.dumps(out), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
