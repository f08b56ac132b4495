"""When the next life of a cron series is due. Workers work it out: the server knows no time zones."""

from __future__ import annotations

import logging

from skep.core.record import Record
from skep.core.schedule import next_due
from skep.lifecycle import Wanted

log = logging.getLogger("skep.worker")

INSTEAD_MS = 300_000


def next_due_of(head: Record, began: int) -> int | None:
    """Behind both its due time and its first run's begin, so that due times missed meanwhile are one run."""
    options = head.options
    if not (options.get("cron") and options.get("again")):
        return None
    return _after(head.task, options["cron"], options.get("tz") or "UTC", max(options.get("slot") or head.due, began))


def due_of(wanted: Wanted) -> int:
    """The same of a life that ended without a worker."""
    return _after(wanted.id, wanted.cron, wanted.tz, max(wanted.slot, wanted.began))


def _after(whose: str, cron: str, tz: str, after: int) -> int:
    try:
        return next_due(cron, tz, after)
    except Exception:  # a line that another release or language wrote; its series must not stop a worker
        log.exception("%r: the cron line %r (%s) cannot be read; its series goes on in 5 minutes", whose, cron, tz)
        return after + INSTEAD_MS
