"""Turn results/*.json into Markdown."""

import json
import os

import registry

NAMES = {
    "A": "enqueue one, jobs/s",
    "B": "enqueue bulk, jobs/s",
    "C": "drain, 1 worker, jobs/s",
    "D": "drain, 2 workers, jobs/s",
    "E": "round trip p50 / p99 ms",
    "F": "delay lateness p50 / p99 ms",
    "G": "bytes per job: waiting / after",
    "H": "crash: re-run after",
}


def num(v):
    return f"{v:,.0f}" if abs(v) >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}"


def cell(work, row):
    if not row or not row.get("best"):
        return "n/a" if row and row.get("error") else "-"
    b = row["best"]
    if work in "EF":
        lost = sum(x.get("lost", 0) for x in row.get("runs", []))
        return f"{num(b['value'])} / {num(b['p99'])}" + (f" ({lost} results never came)" if lost else "")
    if work == "G":
        return f"{num(b['value'])} / {num(b['after'])}"
    if work == "H":
        if b["value"] is None:
            return f"no ({b['again']}/10 in {b['cap']} s)"
        return f"yes, {b['value']:.0f} s"
    return num(b["value"]) + ("" if b.get("complete", True) else "\\*")


class Rows:
    """All that was measured, and the order in which the peers are shown."""

    def __init__(self, rows):
        self.rows = rows
        for r in rows:
            if "runs" not in r and r.get("best"):
                r["runs"] = [r["best"]]
        known = list(registry.PEERS)
        self.peers = list(dict.fromkeys(r["peer"] for r in rows))
        self.peers.sort(key=lambda p: known.index(p) if p in known else 99)

    def of(self, peer, work, setting="off"):
        return [r for r in self.rows if (r["peer"], r["work"], r["setting"]) == (peer, work, setting)]

    def measured(self, peer, work):
        return [r for r in self.of(peer, work) if r.get("best")]

    def best(self, peer, work, setting="off"):
        hits = self.of(peer, work, setting)
        good = [r for r in hits if r.get("best")]
        if work == "H" or not good:
            return hits[0] if hits else None
        if work in "ABCD":
            return max(good, key=lambda r: (r["best"].get("complete", True), r["best"]["value"]))
        return min(good, key=lambda r: r["best"]["value"])


def head(machine):
    m = machine.get
    return [
        "# Peers on one machine",
        "",
        (
            f"{m('cores')} shared cores, Python {m('python')}, Node {m('node')}, {m('server')}. "
            "Best run per cell; \\* = stopped at the time cap. Written by `peers/run.py`; see ../README.md."
        ),
    ]


def summary(rows):
    out = [
        "",
        "## Best configuration of each peer, no persistence",
        "",
        "| peer | " + " | ".join(f"{w}: {NAMES[w]}" for w in NAMES) + " |",
        "|---|" + "---:|" * len(NAMES),
    ]
    for p in rows.peers:
        cells = []
        for w in NAMES:
            r = rows.best(p, w)
            told = w in "CD" or (w in "EF" and sum((x["peer"], x["work"]) == (p, w) for x in rows.rows) > 1)
            cells.append(cell(w, r) + (f" ({r['variant']})" if told and r and r.get("best") else ""))
        version = next(r["version"] for r in rows.rows if r["peer"] == p)
        out.append(f"| {p} {version} | " + " | ".join(cells) + " |")
    return out


def ratios(rows):
    def value(peer, work):
        return ((rows.best(peer, work) or {}).get("best") or {}).get("value")

    base = {w: value("bee-queue", w) for w in "ABCDE"}
    out = [
        "",
        "## The same as a ratio to bee-queue (throughput: higher is better; E: lower is better)",
        "",
        "| peer | A | B | C | D | E |",
        "|---|" + "---:|" * 5,
    ]
    for p in rows.peers:
        cells = [f"{value(p, w) / base[w]:.2f}" if value(p, w) and base[w] else "-" for w in "ABCDE"]
        out.append(f"| {p} | " + " | ".join(cells) + " |")
    return out


def persistent(rows):
    if not any(r["setting"] == "everysec" for r in rows.rows):
        return []
    out = ["", "## appendonly yes, appendfsync everysec", "", "| peer | A | B | C |", "|---|---:|---:|---:|"]
    shown = [p for p in rows.peers if rows.best(p, "A", "everysec")]
    return out + [f"| {p} | " + " | ".join(cell(w, rows.best(p, w, "everysec")) for w in "ABC") + " |" for p in shown]


def drain(rows):
    out = [
        "",
        "## Drain in detail, no persistence",
        "",
        (
            "CPU is microseconds of processor time per job: less noisy than jobs/s on a shared machine, "
            "but not free of noise; the least seen is shown."
        ),
        "",
        "| peer | work | variant | jobs/s | runs | worker CPU us | server CPU us | commands/job |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for r in (r for p in rows.peers for w in "CD" for r in rows.measured(p, w)):
        worker, server = (
            num(min((x[k] for x in r["runs"] if k in x), default=0)) for k in ("worker_cpu_us", "server_cpu_us")
        )
        out.append(
            f"| {r['peer']} | {r['work']} | {r['variant']} | {cell(r['work'], r)} | {len(r['runs'])} | "
            f"{worker} | {server} | {r['best'].get('cmds_per_job', 0):.1f} |"
        )
    return out


def crash(rows):
    out = [
        "",
        "## Crash: SIGKILL with 10 jobs running, worker started again at once",
        "",
        "| peer | variant | running at the kill | run again | first after s | all after s |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for r in (r for p in rows.peers for r in rows.measured(p, "H")):
        b = r["best"]
        first = "-" if b["first_after"] is None else f"{b['first_after']:.1f}"
        every = f"not within {b['cap']}" if b["value"] is None else f"{b['value']:.1f}"
        out.append(f"| {r['peer']} | {r['variant']} | {b['running_at_kill']} | {b['again']} | {first} | {every} |")
    return out


def memory(rows):
    out = [
        "",
        "## Memory, bytes per job (10,000 jobs)",
        "",
        "| peer | waiting | after all succeeded | peak |",
        "|---|---:|---:|---:|",
    ]
    for p in rows.peers:
        r = rows.best(p, "G")
        if r and r.get("best"):
            b = r["best"]
            line = f"| {p} | {num(b['value'])} | {num(b['after'])} | {num(b['peak'])} |"
            out.append(line + ("" if b["complete"] else " (not all ran)"))
    return out


def limits(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        lim = json.load(f)
    out = [
        "",
        "## Physical limit: a perfect client (pre-encoded requests, one connection)",
        "",
        (
            "| setting | how | requests in flight | enqueue jobs/s | reserve + ack jobs/s "
            "| whole life jobs/s | server CPU us/job |"
        ),
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for r in lim["flow"]:
        b = r["best"]
        twice = " x2" if r["depth"] > 1 and r["mode"] != "commands" else ""
        out.append(
            f"| {r['setting']} | {r['mode']} | {r['depth']}{twice} | {num(b['enqueue_jobs_s'])} | "
            f"{num(b['drain_jobs_s'])} | {num(b['value'])} | {b['server_cpu_us']:.1f} |"
        )
    for r in lim.get("trip", []):
        p50, p99 = r["best"]["p50_ms"], r["best"]["p99_ms"]
        out += ["", f"Round trip over bare sockets ({r['setting']}): p50 {p50:.3f} ms, p99 {p99:.3f} ms."]
    return out + raw_commands(lim["bench"])


def raw_commands(measured):
    if not measured:
        return []
    keys = list(measured[0]["best"])
    out = [
        "",
        "## redis-benchmark, thousand requests/s (20 connections)",
        "",
        "| setting | -P | threads | " + " | ".join(keys) + " |",
        "|---|---:|---:|" + "---:|" * len(keys),
    ]
    for r in measured:
        figures = " | ".join(f"{r['best'][k] / 1e3:,.0f}" for k in keys)
        out.append(f"| {r['setting']} | {r['pipe']} | {r['threads']} | {figures} |")
    return out


def failures(rows):
    errors = [r for r in rows.rows if r.get("error") and not r.get("best")]
    if not errors:
        return []
    return ["", "## Could not be measured", ""] + [
        f"- {r['peer']} {r['work']} {r['variant']}: {r['error'].splitlines()[-1][:160]}" for r in errors
    ]


def write(path):
    with open(path) as f:
        data = json.load(f)
    rows = Rows(data["rows"])
    out = head(data.get("machine", {}))
    for section in (summary, ratios, persistent, drain, crash, memory):
        out += section(rows)
    out += limits(os.path.join(os.path.dirname(path), "limits.json")) + failures(rows)
    with open(os.path.splitext(path)[0] + ".md", "w") as f:
        f.write("\n".join(out) + "\n")
