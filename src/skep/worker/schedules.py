"""Schedules in code, `@queue.task(cron=...)` or `every=...`: written as series when a worker starts, if they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skep import lifecycle, views
from skep.core.job import JobRecord
from skep.core.states import FINISHED, JobState
from skep.drafts import Template, add_time
from skep.handler import TaskHandler
from skep.lifecycle import Flags
from skep.store.aio import AsyncStore
from skep.worker.served import Served

PREFIX = "cron:"
TERMS = ("cron", "tz", "every", "again")


async def write(store: AsyncStore, served: Served) -> None:
    """A series under `cron:<task>` for each task that has a schedule. None is ever removed here."""
    for handler in served.registry:
        if isinstance(handler, TaskHandler) and handler.schedule is not None:
            await _write_one(store, served, handler, handler.schedule.terms)


async def _write_one(store: AsyncStore, served: Served, handler: TaskHandler, schedule: Mapping[str, Any]) -> None:
    id = f"{PREFIX}{handler.name}"
    said = {"again": True, **schedule, "task": handler.name, "id": id}
    template = Template.of(said, add_time(handler.options.terms), add_time(served.defaults.terms))
    [known] = await store.send(views.look(served.keys, [id]))
    if known is not None and _is_same(known, template.like.options):
        return
    draft = template.at(await store.send(views.now(served.keys))).draft(b"{}", id)
    # A run that is owed stays owed: only a time that is still to come is set anew.
    moves = known is None or known.status in FINISHED or known.status is JobState.SCHEDULED
    await store.send(lifecycle.upsert(served.keys, [replace(draft, flags=Flags(run_at=moves, counts=False))]))


def _is_same(known: JobRecord, options: Mapping[str, Any]) -> bool:
    """Whether the series goes on by the same terms."""
    if known.status in FINISHED:
        return False
    return all((known.head.options.get(term) or None) == (options.get(term) or None) for term in TERMS)
