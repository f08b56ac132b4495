"""skep: a job queue for Python on Valkey and Redis whose history is a table."""

from __future__ import annotations

from skep.adding import Added
from skep.ajob import AsyncJob
from skep.aqueue import AsyncQueue
from skep.core.options import JobOptions, JobSpec, Update
from skep.core.retry import Backoff
from skep.core.settings import Retention
from skep.core.terms import Priority
from skep.core.unset import UNSET
from skep.errors import (
    Cancelled,
    EventsTrimmed,
    HistoryForked,
    HistoryOff,
    InvalidData,
    InvalidOption,
    JobActive,
    JobCancelled,
    JobExists,
    JobFailed,
    JobNotFound,
    PartlyAdded,
    PayloadTooLarge,
    PermanentError,
    QueueClosed,
    QueueFull,
    ReservedId,
    Retry,
    ServerUnavailable,
    SkepError,
    StaleJob,
)
from skep.event import Event
from skep.job import Job
from skep.queue import Queue
from skep.roster import queues
from skep.several import as_completed, wait
from skep.store.connect import Connection
from skep.worker.context import CurrentJob, current_job
from skep.worker.worker import Worker

__all__ = [
    "Queue",
    "AsyncQueue",
    "Worker",
    "Job",
    "AsyncJob",
    "Event",
    "wait",
    "as_completed",
    "queues",
    "CurrentJob",
    "current_job",
    "JobOptions",
    "JobSpec",
    "Added",
    "Priority",
    "Backoff",
    "Update",
    "Retention",
    "Connection",
    "UNSET",
    "SkepError",
    "InvalidOption",
    "InvalidData",
    "PayloadTooLarge",
    "ReservedId",
    "JobExists",
    "JobActive",
    "StaleJob",
    "QueueFull",
    "QueueClosed",
    "ServerUnavailable",
    "JobNotFound",
    "JobFailed",
    "JobCancelled",
    "PartlyAdded",
    "HistoryOff",
    "EventsTrimmed",
    "HistoryForked",
    "Retry",
    "PermanentError",
    "Cancelled",
]
