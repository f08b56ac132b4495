"""Acts on jobs that are there, and looks at them: one, several, or all that match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypedDict

from skep import lifecycle, pages, views
from skep.core.call import Call, Flow
from skep.core.codec import encode
from skep.core.duration import to_ms
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.core.limits import check_label
from skep.core.options import ChangeOptions, JobOptions
from skep.core.schedule import next_due
from skep.core.settings import FOR_EVER_MS
from skep.core.states import FINISHED, JobState
from skep.core.terms import Duration
from skep.core.unset import UNSET
from skep.drafts import NOT_OPTIONS, first_due
from skep.errors import InvalidOption, JobNotFound, PayloadTooLarge, StaleJob, UnknownStatus
from skep.jobfields import instant
from skep.lifecycle import Target
from skep.pages import Where, twin_of

Act: TypeAlias = Callable[[Sequence[Target]], Call[list[str]]]
"""What is to be done, but for the jobs to do it to."""

Ids: TypeAlias = list[str] | tuple[str, ...] | AbstractSet[str]
"""Several ids."""


class Which(TypedDict, total=False):
    """Which jobs are meant: all that match what is named. `older_than`: since they ended, or were added."""

    status: str
    name: str
    task: str
    older_than: Duration


# An act costs the server 25 us, and where the job carries 64 KiB, 130 us: no call is to hold it for 2 ms.
MOST_IN_A_TRIP = 12
MAX_LINE = 8 << 10
MAX_LOGS = 1000
SLICE = 50
LEVEL = re.compile(r"\w{1,20}")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a job's log."""

    at: datetime
    level: str
    text: str


def on_life(act: Act, id: str, life: int) -> Flow[bool]:
    """On one life. Whether it changed anything."""
    return bool((yield act([(id, life)])))


def on_id(act: Act, id: str) -> Flow[bool]:
    """On an id as it is now. Whether it changed anything."""
    return bool((yield act([(check_label("id", id), None)])))


def on_ids(act: Act, ids: Iterable[str]) -> Flow[list[str]]:
    """On several ids as they are now. Those that changed."""
    changed: list[str] = []
    wanted = [check_label("id", id) for id in ids]
    for first in range(0, len(wanted), MOST_IN_A_TRIP):
        changed += yield act([(id, None) for id in wanted[first : first + MOST_IN_A_TRIP]])
    return changed


def on_matching(keys: Keys, act: Act, where: Where, older_than: Duration | None = None) -> Flow[int]:
    """On all that match, in slices; each of them only if it still stands as it was found. How many changed."""
    before = (yield views.now(keys)) - (0 if older_than is None else to_ms("older_than", older_than))
    changed, cursor, more = 0, None, True
    while more:
        found, cursor = yield from pages.page(keys, where, SLICE, cursor)
        more = cursor is not None
        meant = [each for each in found if older_than is None or _age_from(each) <= before]
        for first in range(0, len(meant), MOST_IN_A_TRIP):
            some = meant[first : first + MOST_IN_A_TRIP]
            changed += len((yield act([(each.id, f"{each.status} {each.head.life}") for each in some])))
    return changed


def _age_from(job: JobRecord) -> int:
    return job.head.created if job.finished is None else job.finished


def steer(keys: Keys, act: Act, ids: str | Iterable[str] | None, which: Mapping[str, Any]) -> Flow[Any]:
    """On one id, on several, or on all that match."""
    if ids is not None:
        if which:
            raise TypeError(f"name ids, or {', '.join(which)}, and not both")
        return (yield from on_id(act, ids) if isinstance(ids, str) else on_ids(act, ids))
    for name in which:
        if name not in Which.__annotations__:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    if not which:
        raise TypeError(f"name an id, ids, or some of {', '.join(Which.__annotations__)}")
    where = Where.of(which.get("status"), which.get("name"), which.get("task"))
    return (yield from on_matching(keys, act, where, which.get("older_than")))


def clean(keys: Keys, status: str, older_than: Duration) -> Flow[int]:
    """Removes finished jobs of a status that ended so long ago."""
    where = Where.of(status, None, None)
    if where.status not in FINISHED:
        raise UnknownStatus("status", status, "the status of finished jobs: succeeded, failed or cancelled")
    return (yield from on_matching(keys, partial(lifecycle.remove, keys), where, older_than))


def empty(keys: Keys) -> Flow[int]:
    """Removes all that waits, whatever for."""
    removed = 0
    for status in (JobState.BLOCKED, JobState.SCHEDULED, JobState.RETRYING, JobState.HELD, JobState.WAITING):
        removed += yield from on_matching(keys, partial(lifecycle.remove, keys), Where(status=status))
    return removed


def look(keys: Keys, id: str, life: int) -> Flow[JobRecord]:
    """A life as it stands now; of a series the present one, and of a merged one that in which it is."""
    record = yield from _known(keys, id)
    if record is None:
        raise JobNotFound(id)
    if record.head.life == life or record.head.options.get("again") or life in record.known.merged:
        return record
    twin = twin_of(record)
    if twin is None or twin.head.life != life:
        raise StaleJob(id, life)
    return twin


def revive(keys: Keys, id: str, life: int) -> Flow[JobRecord | None]:
    """The life that follows on a finished one, if it was one."""
    if not (yield lifecycle.revive(keys, [(id, life)])):
        return None
    return (yield from _known(keys, id))


def _known(keys: Keys, id: str) -> Flow[JobRecord | None]:
    found: list[JobRecord | None] = yield views.look(keys, [id])
    return found[0]


def kept(keep: bool | Duration | None) -> int | None:
    """For how long what is cancelled is kept; None: as it says itself."""
    if keep is None:
        return None
    told: int | bool = JobOptions(keep=keep).terms["keep"]
    return FOR_EVER_MS if told is True else told


def update(keys: Keys, data: Any, options: Mapping[str, Any]) -> Flow[Act]:
    """An update, ready to be done to jobs; of a cron line the first due time is worked out."""
    for name in options:
        if name not in ChangeOptions.__annotations__:
            raise TypeError(f"update() got an unexpected keyword argument {name!r}")
    text = None if data is UNSET else encode(data)
    said = JobOptions(**options)
    terms = said.terms
    changes = {name: value for name, value in terms.items() if name not in NOT_OPTIONS}
    delay, due = terms.get("delay"), terms.get("due")
    if delay is None and due is None and ("delay" in terms or "due" in terms):
        delay = 0  # no time is now
    if changes.get("cron"):
        now = yield views.now(keys)
        due, delay = first_due(changes, now, delay, due), None
        changes["slot"] = due

    def act(targets: Sequence[Target]) -> Call[list[str]]:
        task = terms.get("task")
        return lifecycle.update(keys, targets, data=text, task=task, delay=delay, due=due, options=changes)

    return act


def update_life(keys: Keys, id: str, life: int, data: Any, options: Mapping[str, Any]) -> Flow[bool]:
    """Changes one life."""
    act = yield from update(keys, data, options)
    return (yield from on_life(act, id, life))


def update_many(keys: Keys, ids: str | Iterable[str] | None, data: Any, options: Mapping[str, Any]) -> Flow[Any]:
    """Changes one id, several, or all that match: without ids, the words that could be both say which are meant."""
    which = {name: value for name, value in options.items() if ids is None and name in Which.__annotations__}
    act = yield from update(keys, data, {name: value for name, value in options.items() if name not in which})
    return (yield from steer(keys, act, ids, which))


def upkeep(keys: Keys) -> Flow[int]:
    """Slices of all that time brings, until there is nothing left to do. How many events that made."""
    made, nexts = 0, dict[str, int]()
    while True:
        done: lifecycle.Upkept = yield lifecycle.upkeep(keys, nexts=nexts)
        made += done.events
        nexts = {each.key: next_due(each.cron, each.tz, max(each.slot, each.began)) for each in done.wanted}
        if not done.more and not nexts:
            return made


def log(keys: Keys, id: str, text: object, level: object, most: int | None) -> Flow[bool]:
    """One line, noted from anywhere. False: there is no such job."""
    if not isinstance(text, str) or not isinstance(level, str) or not LEVEL.fullmatch(level):
        raise InvalidOption("log", (text, level), "a text and a level, such as ('half way', 'info')")
    line = text.encode(errors="replace")
    if len(line) > MAX_LINE:
        raise PayloadTooLarge(len(line), MAX_LINE, "a log line")
    said: str = yield lifecycle.note(keys, [(id, b"", "l", line, level, MAX_LOGS if most is None else most)])
    return said == "y"


def lines(keys: Keys, id: str, after: int) -> Flow[tuple[list[LogLine], int | None]]:
    """Some log lines, and behind which the next ones are; None: there are no more."""
    last, found = yield views.lines(keys, id, after=after)
    return [LogLine(instant(at), level, text) for at, level, text in found], last or None


def seconds(option: str, duration: Duration | None) -> float | None:
    """A time to wait."""
    return None if duration is None else to_ms(option, duration) / 1000


def stands(keys: Keys, id: str, life: int, where: str) -> Flow[str]:
    """What a `TimeoutError` says of a job that has not ended."""
    try:
        record = yield from look(keys, id, life)
    except (JobNotFound, StaleJob) as gone:
        return f"not in time: {gone}"
    worker = f" by {record.lease.worker}" if record.lease else ""
    error = f"; its last error: {record.error.type}: {record.error.message}" if record.error else ""
    working = len((yield views.workers(keys)))
    listen = f"{working or 'no'} worker{'' if working == 1 else 's'} of the queue there"
    what = f"job {id!r} of queue {keys.name!r} at {where} has not ended in time"
    return f"{what}: it is {record.status}{worker}{error}; {listen}"
