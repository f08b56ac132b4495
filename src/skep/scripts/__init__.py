"""The Lua scripts: loaded once, shared pieces resolved, named as values. `scripts.claim` is a `Script`."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from skep.core.call import Script
from skep.core.keys import NAMES

USES = re.compile(r"^--@use (.*)$", re.MULTILINE)
LATER = re.compile(r"^--@later (.*)$", re.MULTILINE)
COMMENT_LINES = re.compile(r"^\s*--.*\n", re.MULTILINE)
KEY = re.compile(r"\bkey\.([a-z0-9_]+)")

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


def library(names: list[str], seen: list[str]) -> str:
    """The sources of these pieces and of those they use, each once, users behind what they use."""
    parts: list[str] = []
    for name in names:
        if name not in seen:
            seen.append(name)
            source = folder().joinpath("lib", f"{name}.lua").read_text(encoding="utf-8")
            parts.append(library(pieces(source), seen) + source)
    return "".join(parts)


def later(name: str, seen: list[str]) -> str:
    """A piece that few calls need: `later_NAME()` makes it. Making all functions of all pieces costs 40 us a call."""
    return f"local function later_{name}()\n{library([name], list(seen))}return {name}\nend\n"


def resolve(source: str) -> str:
    """What is sent to the server. Comments stay here: they would only make the server's copy larger."""
    seen: list[str] = []
    whole = library(pieces(source), seen)
    whole += "".join(later(name, seen) for line in LATER.findall(source) for name in line.split()) + source
    used = set(KEY.findall(whole))
    places = (f"{name} = keys[{place}]" for place, name in enumerate(NAMES, 1) if name in used)
    return COMMENT_LINES.sub("", PREAMBLE.format(keys=", ".join(places)) + whole)


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
    redact: Script
    release: Script
    remove: Script
    renew: Script
    revive: Script
    settings: Script
    stage: Script
    update: Script
    upkeep: Script
    upsert: Script
    written: Script


def __getattr__(name: str) -> Script:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return load(name)
    except FileNotFoundError:
        raise AttributeError(f"there is no script {name!r}") from None
