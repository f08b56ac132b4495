"""What a run failed with, as it is kept: every exception can be told, also one that cannot be shown."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

import msgspec

from skep.core.job import JobError

MOST_TRACEBACK = 32 << 10
MOST_MESSAGE = 8 << 10
MOST_DETAILS = 4 << 10
OURS = __file__.rpartition("/")[0]


def describe(error: BaseException, kind: str = "error") -> JobError:
    """The error of a job: its type by its plain name, its text, where it was raised, and its own attributes."""
    return JobError(
        type=type(error).__name__,
        message=_cut(_shown(error), MOST_MESSAGE),
        traceback=_traceback(error),
        kind=kind,
        details=_details(error),
    )


def _shown(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001 - the code of somebody's exception may do anything
        return f"<its text cannot be shown: {type(trouble).__name__}>"


def _traceback(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(type(error), error, _behind_ours(error.__traceback__))
    except Exception as trouble:  # noqa: BLE001 - as above: it asks exceptions, their causes and their notes
        return f"<its traceback cannot be shown: {type(trouble).__name__}>"
    return _cut("".join(lines), MOST_TRACEBACK)


def _behind_ours(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames of the worker, which say nothing of the handler. None is left of an error of our own."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    return trace


def _cut(text: str, most: int) -> str:
    """At most so many bytes, as UTF-8 can write them. The middle goes: both the first cause and the last line tell."""
    written = text.encode(errors="backslashreplace")
    if len(written) <= most:
        return written.decode()
    half = most // 2 - 8
    return f"{written[:half].decode(errors='ignore')}\n[...]\n{written[-half:].decode(errors='ignore')}"


def _details(error: BaseException) -> dict[str, Any]:
    """Those of its own attributes that JSON can say, as far as they are small."""
    found: dict[str, Any] = {}
    left = MOST_DETAILS
    for name, value in list(getattr(error, "__dict__", {}).items()):
        try:
            text = msgspec.json.encode(value)
            left -= len(name) + len(text)
            if left >= 0 and not name.startswith("_"):
                found[name] = msgspec.json.decode(text)
        except Exception:  # noqa: BLE001 - what cannot be said in JSON is left out, whatever it does
            left -= 1
    return found
