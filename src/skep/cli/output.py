"""What commands write: lines and tables for people, JSON for programs, and nothing of a job as it came."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import TextIOWrapper
from itertools import zip_longest
from typing import Any

LONGEST_CELL = 60
NOTHING = "-"


def prepare() -> None:
    """What the encoding of the output has no sign for is written as an escape, too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon() -> None:
    """Nobody reads on, as behind `| head`: what is left to be written goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shown(value: object) -> str:
    """A value as text without anything that a terminal would obey: such characters are shown as escapes."""
    match value:
        case None | "":
            return NOTHING
        case datetime():
            text = value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case str():
            text = value
        case _:
            text = json.dumps(value, ensure_ascii=False, default=str)
    return escaped(text)


def escaped(text: str) -> str:
    """Control characters, line ends and marks that turn the direction of text, as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def lines(pairs: Mapping[str, object]) -> None:
    """Names and values, one pair a line."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        print(f"{name:<{width}}  {shown(value)}")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Aligned columns on a terminal; elsewhere a tab between cells, whole, for programs that cut lines."""
    cells = [list(heads), *([shown(cell) for cell in row] for row in rows)]
    if not sys.stdout.isatty():
        for each in cells:
            print("\t".join(each))
        return
    cells = [[_cut(cell) for cell in each] for each in cells]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    for each in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(each, widths, strict=True)).rstrip())


def _cut(cell: str) -> str:
    return cell if len(cell) <= LONGEST_CELL else f"{cell[: LONGEST_CELL - 3]}..."


def told(value: Any) -> None:
    """One value as a line of JSON, in ASCII."""
    print(json.dumps(value, default=str))


def complain(text: str) -> None:
    """A line for people, beside the output."""
    print(f"skep: {escaped(text)}", file=sys.stderr)
