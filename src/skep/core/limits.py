"""What names, ids and labels may be, and the ids that are derived from arguments."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from skep.core.ids import ALPHABET
from skep.errors import InvalidName, ReservedId

LONGEST_NAME = 200
MAX_PAYLOAD = 1 << 20
MAX_RESULT = 1 << 20
MAX_META = 16 << 10
RESERVED = ("failure-", "cron:")

QUEUE_EXAMPLE = "1 to 200 characters without braces or control characters, such as 'mail'"
SURROGATES = re.compile("[\ud800-\udfff]")
UNFIT = re.compile("[{}\x00-\x1f\x7f-\x9f\ud800-\udfff]")
LABEL_EXAMPLE = "a text of 1 to 200 bytes"


def check_queue_name(name: object, option: str = "name") -> str:
    """The name of a queue, or the prefix of its keys."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or UNFIT.search(name):
        raise InvalidName(option, name, QUEUE_EXAMPLE)
    return name


def check_label(option: str, value: object) -> str:
    """An id, a task's name or a label."""
    if not isinstance(value, str) or not 0 < len(value.encode(errors="surrogatepass")) <= LONGEST_NAME:
        raise InvalidName(option, value, LABEL_EXAMPLE)
    if SURROGATES.search(value):
        raise InvalidName(option, value, f"{LABEL_EXAMPLE} that UTF-8 can write")
    return value


def check_new_id(id: object) -> str:
    """An id that somebody chose for a job."""
    text = check_label("id", id)
    if text.startswith(RESERVED):
        raise ReservedId(text)
    return text


def unique_id(task: str, arguments: Mapping[str, Any], named: tuple[str, ...] | None) -> str:
    """The id that equal calls share: of all arguments, or of those that are named."""
    chosen = dict(arguments) if named is None else {name: arguments[name] for name in named}
    return f"{_cut(task)}~{_digest(task, msgspec.json.encode(chosen, order='deterministic'))}"


def _cut(task: str) -> str:
    return task.encode()[:100].decode(errors="ignore")


def _digest(task: str, data: bytes) -> str:
    """Twenty characters: 119 bits."""
    number = int.from_bytes(hashlib.blake2b(task.encode() + b"\0" + data, digest_size=15).digest(), "big")
    text = ""
    while len(text) < 20:
        number, digit = divmod(number, 62)
        text += ALPHABET[digit]
    return text
