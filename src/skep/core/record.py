"""What `jobs` holds of a job: a short head that the server reads, and the data, which it never decodes.

    letter      1 byte    `@` plus: 1 options follow, 2 a due time, 4 a life, 8 a task
    created     6 bytes   milliseconds, big-endian; so are the next two
    due         6 bytes   where it differs from created
    life        6 bytes   where it is not 0
    task        1 byte for its length, and the name
    options     4 bytes for their length, and a packed map
    data        the rest: JSON

A release that writes another layout begins its records with other letters, and older workers leave them alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

OPTIONS, DUE, LIFE, TASK = 1, 2, 4, 8
FIRST_LETTER, LETTERS = 0x40, 16

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


@dataclass(frozen=True, slots=True)
class Record:
    """A record taken apart. `data` is JSON text; it is b"" where only the head was given."""

    created: int
    due: int
    life: int = 0
    task: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: bytes = b""


def is_known(raw: bytes) -> bool:
    """Whether this release can read it."""
    return FIRST_LETTER <= raw[0] < FIRST_LETTER + LETTERS


def tail(task: str, options: Mapping[str, Any]) -> tuple[int, bytes]:
    """The part of a head that a client makes: its flags and its bytes."""
    flags, parts = 0, b""
    if task:
        name = task.encode()
        flags, parts = TASK, bytes((len(name),)) + name
    if options:
        packed = pack(options)
        flags, parts = flags | OPTIONS, parts + len(packed).to_bytes(4, "big") + packed
    return flags, parts


def read_head(raw: bytes) -> tuple[Record, int]:
    """The head, and where the data (or whatever stands behind it) begins."""
    flags, at = raw[0] - FIRST_LETTER, 7
    created = due = int.from_bytes(raw[1:7], "big")
    life, task, options = 0, "", dict[str, Any]()
    if flags & DUE:
        due, at = int.from_bytes(raw[at : at + 6], "big"), at + 6
    if flags & LIFE:
        life, at = int.from_bytes(raw[at : at + 6], "big"), at + 6
    if flags & TASK:
        end = at + 1 + raw[at]
        task, at = raw[at + 1 : end].decode(), end
    if flags & OPTIONS:
        end = at + 4 + int.from_bytes(raw[at : at + 4], "big")
        options, at = unpack(raw[at + 4 : end]), end
    return Record(created, due, life, task, options), at


def read(raw: bytes) -> Record:
    """All of a record."""
    head, at = read_head(raw)
    return Record(head.created, head.due, head.life, head.task, head.options, raw[at:])
