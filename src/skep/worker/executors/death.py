"""What a child process died of, as far as its parent can tell."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from skep.core.job import JobError

VMSTAT = Path("/proc/vmstat")
COUNTER = "oom_kill"


def oom_kills() -> int | None:
    """How many processes this machine has killed for want of memory. None: it does not tell."""
    try:
        lines = VMSTAT.read_text().splitlines()
    except OSError:
        return None
    counts = (line.split() for line in lines)
    return next((int(count) for name, count in counts if name == COUNTER), None)


def describe_death(status: int, peak: int, oom_before: int | None) -> JobError:
    """The error of a run whose process ended. `status` as `wait4` gives it, `peak` as `ru_maxrss` does."""
    code = os.waitstatus_to_exitcode(status)
    memory = peak if sys.platform == "darwin" else peak * 1024
    details: dict[str, Any] = {"peak_memory": memory}
    if code < 0:
        name = _name(-code)
        starved = code == -signal.SIGKILL and _was_starved(memory, oom_before)
        details |= {"signal": name, "out_of_memory": starved}
        cause = f"was killed by {name}{', probably since memory ran out' if starved else ''}"
    else:
        details |= {"exit_code": code, "out_of_memory": False}
        cause = f"ended with exit code {code}"
    text = f"its process {cause}; it had used at most {memory / (1 << 20):.0f} MiB"
    return JobError(type="ProcessDied", message=text, kind="stall", details=details)


def _was_starved(memory: int, before: int | None) -> bool:
    now = oom_kills()
    if before is not None and now is not None:
        return now > before
    return memory > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
