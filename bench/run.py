#!/usr/bin/env python3
"""Measures what skep must show, beside the raw server and bee-queue, and prints each target as PASS or SHORT.

python bench/run.py [--only adds,drains] [--quick] [--peers] [--write]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import cost, engine, machine, others, slowest, worker
from bench.anchor import Anchor
from bench.machine import ROOT, note
from bench.target import Target

Section = Callable[..., list[Target]]
SECTIONS: dict[str, Section] = {
    "adds": engine.adds,
    "costs": cost.costs,
    "scripts": slowest.scripts,
    "drains": worker.drains,
    "latencies": worker.latencies,
    "idle": worker.idle,
}
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- written by bench/run.py -->", "<!-- end -->"
HEADS = ("target", "measured", "here", "goal", "verdict", "beside it")


def main() -> None:
    """Measures, prints, and where it is asked to, writes."""
    args = _arguments()
    if not Path("/proc/self/schedstat").exists():
        sys.exit("the benchmark reads processor times from /proc/PID/schedstat, which only Linux has")
    peers = others.installed(everyone=args.peers)
    began, load = time.monotonic(), machine.load()
    targets: list[Target] = []
    anchors: list[tuple[str, Anchor]] = []
    for name in args.only or SECTIONS:
        # An anchor of its own: what else goes on in the machine changes within minutes.
        anchor = Anchor(peers)
        targets += SECTIONS[name](anchor, quick=args.quick)
        anchors.append((name, anchor))
    where = (
        f"{machine.described()}; load {load} before and {machine.load()} after; "
        f"{time.monotonic() - began:.0f} s{', --quick' if args.quick else ''}"
    )
    told = [(name, *line) for name, anchor in anchors for line in anchor.lines()]
    _print(where, targets, told)
    if args.write:
        _write(where, targets, told)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures what skep must show.")
    parser.add_argument("--only", type=_sections, metavar="NAMES", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="half the passes")
    parser.add_argument("--peers", action="store_true", help="install BullMQ and Dramatiq too, for the drains")
    parser.add_argument("--write", action="store_true", help=f"rewrite the tables of {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write goes with all sections: the page has all targets")
    return args


def _sections(names: str) -> list[str]:
    chosen = names.split(",")
    for name in chosen:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(SECTIONS)}")
    return chosen


def _print(where: str, targets: Sequence[Target], anchors: Sequence[tuple[str, ...]]) -> None:
    print(f"\n{where}\n")
    print(*_columns(anchors), sep="\n")
    for part in dict.fromkeys(target.part for target in targets):
        mine = [target for target in targets if target.part == part]
        print(f"\n{part}\n")
        for target, line in zip(mine, _columns([target.cells[:5] for target in mine]), strict=True):
            print(line)
            if target.note:
                print(f"    {target.note}")
    short = sum(target.verdict == "SHORT" for target in targets)
    passed = sum(target.verdict == "PASS" for target in targets)
    print(f"\n{passed} PASS, {short} SHORT, {len(targets) - passed - short} to come")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _write(where: str, targets: Sequence[Target], anchors: Sequence[tuple[str, ...]]) -> None:
    """The page keeps what stands around the tables."""
    lines = [BEGIN, "", where[0].upper() + where[1:] + ".", ""]
    for part in dict.fromkeys(target.part for target in targets):
        lines += [f"### {part.capitalize()}", ""]
        lines += _table(HEADS, (target.cells for target in targets if target.part == part))
    lines += ["### Anchors", "", *_table(("section", "anchor", "here", "reference"), anchors), END]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + "\n".join(lines) + after, encoding="utf-8")
    note(f"written: {PAGE.relative_to(ROOT)}")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *body, ""]


if __name__ == "__main__":
    main()
