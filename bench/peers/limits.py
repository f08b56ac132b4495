#!/usr/bin/env python3
"""The physical limit: what the server can do for the commands a minimal reliable queue needs.

    python limits.py [--setting off,everysec] [--out ../results/limits.json] [--part flow,trip,bench]

trip:  the floor of a round trip (enqueue, run, result back) over bare sockets.
bench: redis-benchmark (C client) per raw command, -P 16/64/256, 1 and 2 client threads.
flow:  a perfect client: every request is encoded beforehand, whole pipelines are written
       to one socket, replies are only counted. Real ids go enqueue -> reserve -> ack, so
       each command finds its data; the end state is checked.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import run
from run import Lease, Server

PAYLOAD = '{"x":2,"y":3}'
LUA = {
    "enqueue": "redis.call('HSET',KEYS[1],ARGV[1],ARGV[2]) redis.call('LPUSH',KEYS[2],ARGV[1]) return 1",
    "reserve": (
        "local i=redis.call('LMOVE',KEYS[2],KEYS[3],'RIGHT','LEFT') "
        "if i then return {i,redis.call('HGET',KEYS[1],i)} end"
    ),
    "ack": "redis.call('LREM',KEYS[3],-1,ARGV[1]) redis.call('HDEL',KEYS[1],ARGV[1]) return 1",
    # the whole worker side of a job in one call: ack the last one, take the next
    "ack+reserve": "redis.call('LREM',KEYS[3],-1,ARGV[1]) redis.call('HDEL',KEYS[1],ARGV[1]) "
    "local i=redis.call('LMOVE',KEYS[2],KEYS[3],'RIGHT','LEFT') "
    "if i then return {i,redis.call('HGET',KEYS[1],i)} end",
    "enqueue100": "redis.call('HSET',KEYS[1],unpack(ARGV)) local t={} "
    "for k=1,#ARGV,2 do t[#t+1]=ARGV[k] end redis.call('LPUSH',KEYS[2],unpack(t)) return 1",
    # taken jobs go to a sorted set with a lease time: one ZADD for all of them
    "reserve100": "local t=redis.call('RPOP',KEYS[2],ARGV[1]) if not t then return 0 end local z={} "
    "for k=1,#t do z[2*k-1]=ARGV[2] z[2*k]=t[k] end redis.call('ZADD',KEYS[3],unpack(z)) "
    "return {t,redis.call('HMGET',KEYS[1],unpack(t))}",
    "ack100": "redis.call('ZREM',KEYS[3],unpack(ARGV)) redis.call('HDEL',KEYS[1],unpack(ARGV)) return 1",
}
KEYS = ["q:jobs", "q:wait", "q:act"]


def enc(*args):
    out = [b"*%d\r\n" % len(args)]
    for a in args:
        raw = a if isinstance(a, bytes) else str(a).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
    return b"".join(out)


def push(port, requests, depth, reply_size):
    """Write requests in groups of `depth`, two groups in flight; seconds used."""
    groups = [
        (b"".join(requests[i : i + depth]), min(depth, len(requests) - i)) for i in range(0, len(requests), depth)
    ]
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    view = memoryview(bytearray(1 << 20))
    ahead = 1 if depth == 1 else 2
    flight, t0 = [], time.perf_counter()

    def collect():
        need = flight.pop(0)
        while need > 0:
            got = s.recv_into(view, min(need, len(view)))
            if not got:
                raise RuntimeError("server closed")
            need -= got

    for data, count in groups:
        if len(flight) >= ahead:
            collect()
        s.sendall(data)
        flight.append(count * reply_size)
    while flight:
        collect()
    secs = time.perf_counter() - t0
    s.close()
    return secs


def flow(mode, setting, depth, n):
    srv = Server(setting)
    try:
        sha = {k: srv.cmd("SCRIPT", "LOAD", v).decode() for k, v in LUA.items()}
        ids = [f"{i:08d}" for i in range(n)]
        pl = PAYLOAD
        one_id, bulk_pl = b"$8\r\n00000000\r\n", b"$%d\r\n%s\r\n" % (len(pl), pl.encode())
        phases = {}

        def phase(name, reqs, reply, per=1):
            u0 = srv.usage()
            secs = push(srv.port, reqs, depth, reply)
            u1 = srv.usage()
            phases[name] = {"jobs_s": n / secs, "server_cpu_us": (u1["cpu"] - u0["cpu"]) / n * 1e6}

        J, W, A = KEYS
        if mode == "commands":  # plain ones; replies ':1' and ':<len>' vary, so use fixed-size ones
            phase("hset", [enc("HSET", J, i, pl) for i in ids], 4)
            # LPUSH answers the length: pad by pushing onto a long list first
            srv.cmd(
                "EVAL",
                "for k=1,10000000,1000 do local t={} for j=1,1000 do t[j]='00000000' end "
                "redis.call('LPUSH','pad',unpack(t)) end",
                "0",
            )
            phase("lpush", [enc("LPUSH", "pad", i) for i in ids], len(b":10000001\r\n"))
            srv.cmd("DEL", "pad")
            for k in range(0, n, 1000):
                srv.cmd("LPUSH", W, *ids[k : k + 1000])
            # reserve one, read it, ack it: the active list stays short
            inter = [enc("LMOVE", W, A, "RIGHT", "LEFT") + enc("HGET", J, i) for i in ids]
            u0 = srv.usage()
            # in blocks of 100 in flight, as a worker with concurrency 100 would do
            mixed = []
            for k in range(0, n, 100):
                mixed.append(b"".join(inter[k : k + 100]))
                mixed.append(b"".join(enc("LREM", A, "-1", i) + enc("HDEL", J, i) for i in ids[k : k + 100]))
            s = socket.create_connection(("127.0.0.1", srv.port))
            t0 = time.perf_counter()
            for x, blk in enumerate(mixed):
                m = min(100, n - (x // 2) * 100)
                s.sendall(blk)
                need = m * (len(one_id) + len(bulk_pl)) if x % 2 == 0 else m * 8
                while need > 0:
                    need -= len(s.recv(min(need, 1 << 18)))
            secs = time.perf_counter() - t0
            s.close()
            u1 = srv.usage()
            phases["reserve+ack"] = {"jobs_s": n / secs, "server_cpu_us": (u1["cpu"] - u0["cpu"]) / n * 1e6}
        elif mode == "evalsha":
            phase("enqueue", [enc("EVALSHA", sha["enqueue"], 3, *KEYS, i, pl) for i in ids], 4)
            first = srv.cmd("EVALSHA", sha["reserve"], "3", *KEYS)
            assert first[0].decode() == ids[0], first
            reply = len(b"*2\r\n") + len(one_id) + len(bulk_pl)
            reqs = [enc("EVALSHA", sha["ack+reserve"], 3, *KEYS, i) for i in ids[:-1]]
            n -= 1
            phase("ack+reserve", reqs, reply)
            srv.cmd("EVALSHA", sha["ack"], "3", *KEYS, ids[-1])
        else:
            chunks = [ids[k : k + 100] for k in range(0, n, 100)]
            phase(
                "enqueue",
                [enc("EVALSHA", sha["enqueue100"], 3, *KEYS, *(v for i in c for v in (i, pl))) for c in chunks],
                4,
            )
            reply = len(b"*2\r\n") + 2 * len(b"*100\r\n") + 100 * (len(one_id) + len(bulk_pl))
            phase(
                "reserve",
                [enc("EVALSHA", sha["reserve100"], 3, *KEYS, 100, 1700000000) for _ in chunks],
                reply,
            )
            phase("ack", [enc("EVALSHA", sha["ack100"], 3, *KEYS, *c) for c in chunks], 4)
        left = [
            int(srv.cmd("HLEN", J)),
            int(srv.cmd("LLEN", W)),
            int(srv.cmd("ZCARD" if mode == "evalsha100" else "LLEN", A)),
        ]
        assert left == [0, 0, 0], left
        cycle = 1 / sum(1 / p["jobs_s"] for p in phases.values())
        cpu = sum(p["server_cpu_us"] for p in phases.values())
        worker = 1 / sum(1 / p["jobs_s"] for k, p in phases.items() if k not in ("enqueue", "hset", "lpush"))
        enq = 1 / sum(1 / p["jobs_s"] for k, p in phases.items() if k in ("enqueue", "hset", "lpush"))
        return {
            "value": cycle,
            "enqueue_jobs_s": enq,
            "drain_jobs_s": worker,
            "server_cpu_us": cpu,
            "phases": phases,
        }
    finally:
        srv.close()


def trip(setting, n=3000):
    """The floor of a round trip: a job stored, taken by a blocking move, acked, its result pushed back."""
    srv = Server(setting)
    J, W, A = KEYS
    worker = os.fork()
    if not worker:
        s = socket.create_connection(("127.0.0.1", srv.port))
        take = enc("BLMOVE", W, A, "RIGHT", "LEFT", "0")
        while True:
            s.sendall(take)
            i = s.recv(100).split(b"\r\n")[1]
            s.sendall(enc("HGET", J, i))
            s.recv(100)
            s.sendall(enc("HDEL", J, i) + enc("LREM", A, "-1", i) + enc("LPUSH", b"r:" + i, "5"))
            need = 12
            while need > 0:
                need -= len(s.recv(need))
    try:
        s = socket.create_connection(("127.0.0.1", srv.port))
        ms = []
        for k in range(n):
            i = f"{k:08d}"
            t = time.perf_counter()
            s.sendall(enc("HSET", J, i, PAYLOAD) + enc("LPUSH", W, i) + enc("BRPOP", "r:" + i, "0"))
            got = b""
            while not got.endswith(b"$1\r\n5\r\n"):
                got += s.recv(200)
            ms.append((time.perf_counter() - t) * 1e3)
        return {"p50_ms": run.pct(ms, 0.5), "p99_ms": run.pct(ms, 0.99)}
    finally:
        os.kill(worker, 9)
        os.waitpid(worker, 0)
        srv.close()


def bench(setting, pipe, threads, n=400000):
    exe = os.environ.get("BENCH_REDIS_BENCHMARK") or shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
    if not exe:
        return None
    srv = Server(setting)
    out = {}
    try:
        for name, cmd in [
            ("HSET", ["HSET", "q:jobs", "__rand_int__", PAYLOAD]),
            ("LPUSH", ["LPUSH", "q:wait", "__rand_int__"]),
            ("LMOVE", ["LMOVE", "q:wait", "q:act", "RIGHT", "LEFT"]),
            ("HGET", ["HGET", "q:jobs", "__rand_int__"]),
            ("ZADD", ["ZADD", "q:z", "1", "__rand_int__"]),
            ("ZREM", ["ZREM", "q:z", "__rand_int__"]),
            ("LREM", ["LREM", "q:short", "-1", "__rand_int__"]),
            ("HDEL", ["HDEL", "q:jobs", "__rand_int__"]),
            ("EVALSHA enqueue", "enqueue"),
            ("EVALSHA reserve", "reserve"),
            ("EVALSHA ack", "ack"),
        ]:
            if isinstance(cmd, str):
                sha = srv.cmd("SCRIPT", "LOAD", LUA[cmd]).decode()
                keys = ["q:jobs", "q:wait", "q:short" if cmd == "ack" else "q:act"]
                rest = [] if cmd == "reserve" else ["__rand_int__", PAYLOAD]
                cmd = ["EVALSHA", sha, "3", *keys, *rest]  # noqa: PLW2901 - the command of that script
            r = subprocess.run(
                [
                    exe,
                    "-h",
                    "127.0.0.1",
                    "-p",
                    str(srv.port),
                    "-P",
                    str(pipe),
                    "-c",
                    "20",
                    "-n",
                    str(n),
                    "-r",
                    "100000",
                    "--threads",
                    str(threads),
                    "--csv",
                    *cmd,
                ],
                capture_output=True,
                text=True,
            )
            rows = [x for x in r.stdout.splitlines() if x.startswith('"') and not x.startswith('"test"')]
            out[name] = float(rows[-1].split('","')[1])
        return out
    finally:
        srv.close()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--setting", default="off,everysec")
    ap.add_argument("--part", default="flow,trip,bench")
    ap.add_argument("--repeat", type=int, default=3)
    ap.add_argument("--out", default=os.path.join(run.HERE, "..", "results", "limits.json"))
    args = ap.parse_args()
    os.makedirs(run.SCRATCH, exist_ok=True)
    data = {"flow": [], "bench": []}
    if os.path.exists(args.out):
        with open(args.out) as f:
            data = json.load(f)
    lease = Lease()
    for setting in args.setting.split(","):
        if "flow" in args.part:
            for mode, depths in (
                ("commands", [100]),
                ("evalsha", [1, 16, 64, 256]),
                ("evalsha100", [1, 4, 16]),
            ):
                for depth in depths:
                    n = 10000 if mode == "evalsha" and depth == 1 else 100000
                    runs = []
                    for _ in range(args.repeat):
                        lease.take()
                        runs.append(flow(mode, setting, depth, n))
                        lease.maybe_give()
                    best = max(runs, key=lambda r: r["value"])
                    data["flow"] = [
                        r for r in data["flow"] if (r["setting"], r["mode"], r["depth"]) != (setting, mode, depth)
                    ]
                    data["flow"].append(
                        {
                            "setting": setting,
                            "mode": mode,
                            "depth": depth,
                            "best": best,
                            "all": [r["value"] for r in runs],
                        }
                    )
                    run.log(setting, mode, depth, {k: round(v, 1) for k, v in best.items() if k != "phases"})
        if "trip" in args.part:
            runs = []
            for _ in range(args.repeat):
                lease.take()
                runs.append(trip(setting))
                lease.maybe_give()
            best = min(runs, key=lambda r: r["p50_ms"])
            data["trip"] = [r for r in data.get("trip", []) if r["setting"] != setting] + [
                {"setting": setting, "best": best}
            ]
            run.log(setting, "trip", best)
        if "bench" in args.part:
            for pipe, threads in ((16, 1), (64, 1), (256, 1), (64, 2)):
                runs = []
                for _ in range(args.repeat):
                    lease.take()
                    runs.append(bench(setting, pipe, threads))
                    lease.maybe_give()
                if runs[0] is None:
                    print("no redis-benchmark here", file=sys.stderr)
                    break
                best = {k: max(r[k] for r in runs) for k in runs[0]}
                data["bench"] = [
                    r for r in data["bench"] if (r["setting"], r["pipe"], r["threads"]) != (setting, pipe, threads)
                ]
                data["bench"].append({"setting": setting, "pipe": pipe, "threads": threads, "best": best})
                run.log(setting, "bench", pipe, threads, {k: round(v) for k, v in best.items()})
        with open(args.out, "w") as f:
            json.dump(data, f, indent=1)


if __name__ == "__main__":
    main()
