"""Small scripts that tell how often a call took effect, and the calls that send them."""

from __future__ import annotations

import hashlib
from functools import cache

from skep.core.call import Arg, Call, Script
from skep.core.keys import Keys
from skep.scripts import resolve

KEYS = Keys("mail")

ADD = """--@use calls
local kept = calls.before(now, call)
if kept then return kept end
return calls.answered(now, call, '=' .. server('HINCRBY', key.queue, ARGV[3], 1))
"""
ADD_ONCE = """--@use calls
local kept = calls.before(now, call)
if kept then return kept end
if server('HEXISTS', key.queue, ARGV[3]) == 1 then return calls.answered(now, call, '!JobExists ' .. ARGV[3]) end
return calls.answered(now, call, '=' .. server('HINCRBY', key.queue, ARGV[3], 1))
"""
APPEND = """--@use calls
local kept = calls.before(now, call)
if kept then return kept end
server('RPUSH', key.wake, ARGV[3])
return calls.answered(now, call, '=')
"""
REMOVE = """--@use calls
local kept = calls.before(now, call)
if kept then return kept end
server('HDEL', key.queue, ARGV[3])
return calls.answered(now, call, '=')
"""
LOOK = "return server('HGET', key.queue, ARGV[3]) or '0'"
ORDER = "return server('LRANGE', key.wake, 0, -1)"
CLOCK = "return tostring(now)"
SWEEP = "--@use calls\ncalls.sweep(now)\nreturn server('HLEN', key.lanes)"


@cache
def script(source: str) -> Script:
    """What is sent to the server for a source with `--@use`."""
    resolved = resolve(source)
    return Script("test", resolved, hashlib.sha1(resolved.encode(), usedforsecurity=False).hexdigest())


def add(field: Arg, keys: Keys = KEYS) -> Call[int]:
    """Counts one up; its answer is the new count."""
    return Call(script(ADD), keys.all, (field,), int)


def end_of_run(field: Arg) -> Call[int]:
    """The same, but of something so exactly named that it may be said again in a new lane."""
    return Call(script(ADD), KEYS.all, (field,), int, again=True)


def add_once(field: Arg) -> Call[int]:
    """Counts from nothing to one; afterwards it is refused."""
    return Call(script(ADD_ONCE), KEYS.all, (field,), int)


def append(word: str) -> Call[bytes]:
    """Remembers the order in which words take effect."""
    return Call(script(APPEND), KEYS.all, (word,), bytes)


def remove(field: Arg) -> Call[bytes]:
    """Frees memory."""
    return Call(script(REMOVE), KEYS.all, (field,), bytes)


def count(field: Arg, keys: Keys = KEYS) -> Call[int]:
    """How often a field was counted up: a read."""
    return Call(script(LOOK), keys.all, (field,), int, laned=False)


def order() -> Call[list[str]]:
    """The words in the order in which they took effect."""
    return Call(script(ORDER), KEYS.all, (), lambda words: [word.decode() for word in words], laned=False)


def clock() -> Call[int]:
    """The time that a script sees."""
    return Call(script(CLOCK), KEYS.all, (), int, laned=False)


def sweep() -> Call[int]:
    """Sweeps some silent lanes; its answer is how many are left."""
    return Call(script(SWEEP), KEYS.all, (), int, laned=False)
