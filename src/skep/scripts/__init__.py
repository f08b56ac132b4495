"""The Lua scripts: loaded once, shared pieces resolved, named as values. `scripts.claim` is a `Script`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from typing import TYPE_CHECKING

from skep.core.call import Script
from skep.core.keys import NAMES

USES = re.compile(r"^--@use (.*)$", re.MULTILINE)
LATER = re.compile(r"^--@later (.*)$", re.MULTILINE)
COMMENT_LINES = re.compile(r"^\s*--.*\n", re.MULTILINE)
KEY = re.compile(r"\bkey\.([a-z0-9_]+)")
AT_ONCE = re.compile(r"\blater_(\w+)\(\)\.")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# From `function` in the first column to the `end` below it, or to that of its own line.
FUNCTION = re.compile(
    r"^(?:local )?function (?P<name>[\w.]+)\([^\n]*\bend\n|^(?:local )?function (?P<name2>[\w.]+)\(.*?^end\n",
    re.MULTILINE | re.DOTALL,
)

# Every script knows the keys of its queue by the names of `Keys`, the time, its lane's call, and the server.
# The keys are fields of one table, not locals: each function that uses a local looks for it among all that are in use.
PREAMBLE = """\
local keys = KEYS
local key = {{ {keys} }}
local server, now, call = redis.call, tonumber(ARGV[1]), ARGV[2]
if not now then
  local time = server('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
"""


def folder() -> Traversable:
    """Where the scripts lie, in the installed package."""
    return files(__name__)


def pieces(source: str) -> list[str]:
    """The shared pieces that a script or a piece names with `--@use`, in its order."""
    return [name for line in USES.findall(source) for name in line.split()]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A function of a piece, or (without a name) what stands between two functions."""

    name: str
    text: str


def chunks(piece: str) -> list[Chunk]:
    """The functions of a shared piece, and what stands between them."""
    source = COMMENT_LINES.sub("", folder().joinpath("lib", f"{piece}.lua").read_text(encoding="utf-8"))
    found: list[Chunk] = []
    at = 0
    for match in FUNCTION.finditer(source):
        found.append(Chunk("", source[at : match.start()]))
        name = match["name"] or match["name2"]
        # What is put into another table than the piece's is looked up by a word that only the run knows.
        found.append(Chunk(name if name.rpartition(".")[0] in ("", piece) else "", match[0]))
        at = match.end()
    return [*found, Chunk("", source[at:])]


def library(names: list[str], seen: list[str]) -> list[Chunk]:
    """The chunks of these pieces and of those they use, each once, users behind what they use."""
    parts: list[Chunk] = []
    for name in names:
        if name not in seen:
            seen.append(name)
            used = pieces(folder().joinpath("lib", f"{name}.lua").read_text(encoding="utf-8"))
            parts += [*library(used, seen), *chunks(name)]
    return parts


def needed(parts: list[Chunk], script: str) -> set[str]:
    """The names of the functions that a script needs, directly or through others."""
    names: set[str] = set()
    text = AT_ONCE.sub(r"\1.", script) + "".join(part.text for part in parts if not part.name)
    while True:
        words = set(WORD.findall(text))
        more = [part for part in parts if part.name in words and part.name not in names]
        if not more:
            return names
        names.update(part.name for part in more)
        text = "".join(part.text for part in more)


def resolve(source: str) -> str:
    """What is sent to the server: the script, and the functions of its pieces that it needs.

    Every call makes them anew, at 1 us each; hence none that is not needed, and those that few calls need are made only
    by `later_NAME()`. Comments stay here.
    """
    seen: list[str] = []
    eager = library(pieces(source), seen)
    rare = {name: library([name], list(seen)) for line in LATER.findall(source) for name in line.split()}
    script = COMMENT_LINES.sub("", source)
    names = needed([*eager, *chain.from_iterable(rare.values())], script)

    def text(parts: list[Chunk]) -> str:
        return "".join(part.text for part in parts if not part.name or part.name in names)

    whole = text(eager)
    for name, parts in rare.items():
        whole += f"local function later_{name}()\n{text(parts)}return {name}\nend\n"
    whole += script
    used = set(KEY.findall(whole))
    places = (f"{name} = keys[{place}]" for place, name in enumerate(NAMES, 1) if name in used)
    return PREAMBLE.format(keys=", ".join(places)) + whole


@cache
def load(name: str) -> Script:
    """The script of this name."""
    source = resolve(folder().joinpath(f"{name}.lua").read_text(encoding="utf-8"))
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


if TYPE_CHECKING:
    add: Script
    expect: Script
    feed: Script
    cancel: Script
    claim: Script
    configure: Script
    counts: Script
    decide: Script
    drop: Script
    edges: Script
    fence: Script
    hold: Script
    join: Script
    leave: Script
    lines: Script
    leave_run: Script
    look: Script
    move: Script
    note: Script
    now: Script
    page: Script
    pause: Script
    promote: Script
    reader: Script
    readers: Script
    redact: Script
    release: Script
    remove: Script
    renew: Script
    revive: Script
    schedules: Script
    settings: Script
    stage: Script
    stats: Script
    update: Script
    upkeep: Script
    upsert: Script
    walk: Script
    workers: Script
    written: Script


def __getattr__(name: str) -> Script:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return load(name)
    except FileNotFoundError:
        raise AttributeError(f"there is no script {name!r}") from None
