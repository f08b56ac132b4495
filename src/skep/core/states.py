"""The states of a job and the arrows between them: the only table of both. The docs and a test are made from it."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. `job.status` is one of these words."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    BLOCKED = "blocked"
    HELD = "held"
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


IDLE = frozenset({JobState.WAITING, JobState.SCHEDULED, JobState.RETRYING})
FINISHED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
UNFINISHED = frozenset(JobState) - FINISHED

ALIASES = {"completed": JobState.SUCCEEDED, "terminated": JobState.FAILED}
"""Words of other queues that are understood when asking."""

# What each script may do to a job: from these states to those. "" is no job at all.
TRANSITIONS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(before.split("|")), frozenset(after.split("|")))
    for name, before, after in (
        ("add", "", "waiting|scheduled"),
        (
            "upsert",
            "|waiting|scheduled|retrying|held|active|blocked|succeeded|failed|cancelled",
            "waiting|scheduled|retrying|held|blocked",
        ),
        (
            "update",
            "waiting|scheduled|retrying|held|active|blocked|succeeded|failed|cancelled",
            "waiting|scheduled|retrying|held",
        ),
        ("promote", "scheduled|retrying", "waiting"),
        ("hold", "waiting|scheduled|retrying", "held"),
        ("release", "held", "waiting|scheduled|retrying"),
        ("cancel", "waiting|scheduled|retrying|held|blocked|active", "cancelled|active"),
        ("claim", "waiting|scheduled|retrying|held", "active|held|cancelled"),
        ("leave_run", "active", "succeeded|failed|cancelled|waiting|scheduled|retrying|held"),
        ("revive", "succeeded|failed|cancelled", "waiting"),
        ("redact", "succeeded|failed|cancelled", "succeeded|failed|cancelled"),
        ("remove", "waiting|scheduled|retrying|held|blocked|succeeded|failed|cancelled", ""),
    )
}
