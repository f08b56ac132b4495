"""What is known of a job at one moment, as the server tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from skep.core import record
from skep.core.states import FINISHED, JobState

EMPTY: Mapping[str, Any] = {}


class JobError(msgspec.Struct, frozen=True, kw_only=True):
    """What a run failed with. `kind`: error, timeout, stall or permanent; `details`: the exception's own attributes."""

    type: str = ""
    message: str = ""
    traceback: str = ""
    kind: str = "error"
    details: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        head = f"{self.type}: {self.message}" if self.message else self.type
        return f"{head}\n\n{self.traceback}" if self.traceback else head


decode_error = msgspec.json.Decoder(JobError).decode
encode_error = msgspec.json.Encoder().encode


class Previous(msgspec.Struct, frozen=True, kw_only=True):
    """The last life of an id, in short. Times are milliseconds; `error` is the type of what it failed with."""

    life: int
    status: str
    created: int
    due: int
    finished: int
    began: int | None = None
    error: str | None = None
    merged: tuple[int, ...] = ()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a life has been through, as the server keeps it beside the record. `merged`: lives that are in it now."""

    runs: int = 0
    attempts: int = 0
    failures: int = 0
    stalls: int = 0
    timeouts: int = 0
    began: int | None = None
    error: str | None = None
    previous: Previous | None = None
    merged: tuple[int, ...] = ()


NOTHING = Known()
decode_known = msgspec.msgpack.Decoder(Known).decode


@dataclass(frozen=True, slots=True)
class Lease:
    """Who runs a job: worker, the number of its claim, and since when (ms)."""

    worker: str
    claim: int
    started: int

    @classmethod
    def read(cls, raw: bytes) -> Lease:
        """From the text that the server keeps."""
        worker, claim, started = raw.decode().rsplit(" ", 2)
        return cls(worker, int(claim), int(started))


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as it stood when it was read. Times are milliseconds of the server's clock, texts are JSON."""

    queue: str
    id: str
    head: record.Record
    status: JobState
    known: Known = NOTHING
    reason: str = ""
    lease: Lease | None = None
    finished: int | None = None
    result: bytes | None = None
    error: JobError | None = None
    progress: bytes | None = None
    stop: bool = False
    twin: record.Record | None = None

    @classmethod
    def read(cls, queue: str, id: str, parts: Sequence[Any]) -> JobRecord:
        """From a reply of the script `look`."""
        raw, status_word, more, counts, progress, stop, twin = parts
        status = JobState(status_word.decode())
        known = decode_known(counts) if counts else NOTHING
        reason, lease, finished, text = "", None, None, b""
        if status in FINISHED:
            finished, size = int.from_bytes(more[:6], "big"), more[6]
            lease = Lease.read(more[7 : 7 + size]) if size else None
            text = more[7 + size :]
        elif status is JobState.ACTIVE:
            lease = Lease.read(more)
        elif status is JobState.HELD:
            reason = more.decode()
        return cls(
            queue=queue,
            id=id,
            head=record.read(raw),
            status=status,
            known=Known(runs=1, attempts=1) if status is JobState.SUCCEEDED and counts is None else known,
            reason=text.decode() if status is JobState.CANCELLED else reason,
            lease=lease,
            finished=finished,
            result=text if status is JobState.SUCCEEDED else None,
            error=read_error(text if status is JobState.FAILED else (known.error or "").encode()),
            progress=progress,
            stop=stop is not None,
            twin=record.read(twin) if twin else None,
        )


def read_error(text: bytes) -> JobError | None:
    """An error as the server keeps it; None: there is none."""
    try:
        return decode_error(text) if text else None
    except msgspec.DecodeError:
        return JobError(type="Unreadable", message=text.decode(errors="replace"))
