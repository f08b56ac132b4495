"""The options of `format("skep")`: parsed once, on the driver; errors show an example of what is right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, cast

from skep.core.limits import check_label, check_queue_name
from skep.core.states import ALIASES, JobState
from skep.errors import InvalidOption, SkepError

NAMES = (
    *("url", "prefix", "queue", "queues", "table", "columns"),
    *("id", "name", "status"),
    *("reader", "since", "rowsPerBatch"),
    *("task", "dataColumn", "writeId", "badRows", "stagingTtl"),
)
"""All options: each reader and writer takes those that concern it, so that one view serves both."""

# What Spark adds of its own: the first line for paths and streams, the second for a CREATE TABLE.
OF_SPARK = re.compile(
    "path|checkpointlocation|queryname"
    "|owner|provider|location|comment|external|collation|is_managed_location|option[.].*"
)
QUEUE_HINT = (
    "the name of a queue, such as .option('queue', 'mail'); in SQL: CREATE TEMPORARY VIEW v USING skep"
    " OPTIONS (queue 'mail'), or SELECT ... WITH ('queue' = 'mail')"
)
QUEUES_EXAMPLE = "names with commas between, such as 'mail,billing', or a JSON list, such as '[\"mail\", \"a,b\"]'"


class UnknownOption(SkepError, ValueError):
    """An option that `format("skep")` does not have. Its value is not shown: it may be a secret."""

    def __init__(self, option: str) -> None:
        near = get_close_matches(option.lower(), [name.lower() for name in NAMES], n=1)
        meant = next((name for name in NAMES if near and name.lower() == near[0]), None)
        hint = f"did you mean {meant}?" if meant else f"there are {', '.join(NAMES)}"
        super().__init__(f"option {option!r} is unknown to format('skep'): {hint}")
        self.option = option


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """Queues by name, or by patterns in which `*` stands for any text."""

    words: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are meant whether they are there yet or not."""
        return tuple(word for word in self.words if "*" not in word)

    @property
    def is_open(self) -> bool:
        """Whether queues that come later may be meant too."""
        return len(self.names) < len(self.words)

    def picks(self, queue: str) -> bool:
        """Whether this queue is meant."""
        return any(re.fullmatch(_regex(word), queue, re.DOTALL) for word in self.words)


def _regex(word: str) -> str:
    return ".*".join(map(re.escape, word.split("*")))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOptions:
    """`spark.read` of jobs as they are now. No url: the default one. No columns: all; so of ids, names and statuses."""

    url: str | None = field(default=None, repr=False)
    prefix: str = "skep"
    queues: QueueChoice
    columns: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    statuses: tuple[JobState, ...] = ()

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> JobsOptions:
        """From what Spark was told by `.option(...)`."""
        given = _given(raw)
        return cls(
            url=given.get("url"),
            prefix=_prefix(given),
            queues=_queues(given),
            columns=_columns(given),
            ids=_list_of_labels(given, "id"),
            names=_list_of_labels(given, "name"),
            statuses=_statuses(given),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsOptions:
    """`spark.read` and `spark.readStream` of events after number `since`, so many in a micro-batch."""

    url: str | None = field(default=None, repr=False)
    prefix: str = "skep"
    queues: QueueChoice
    columns: tuple[str, ...] = ()
    reader: str | None = None
    since: int = 0
    rows_per_batch: int = 1_000_000

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> EventsOptions:
        """From what Spark was told by `.option(...)`."""
        given = _given(raw)
        queues = _queues(given)
        since = _whole(given, "since", "0", least=0)
        if since and (queues.is_open or len(queues.names) != 1):
            raise InvalidOption("since", since, "0 where several queues are read: each counts its own events")
        return cls(
            url=given.get("url"),
            prefix=_prefix(given),
            queues=queues,
            columns=_columns(given),
            reader=_label(given, "reader"),
            since=since,
            rows_per_batch=_whole(given, "rowsPerBatch", "1000000", least=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """`df.write` and `df.writeStream` to one queue. No data column: all but those that begin with `skep_`."""

    url: str | None = field(default=None, repr=False)
    prefix: str = "skep"
    queue: str
    task: str | None = None
    data_column: str | None = None
    write_id: str | None = None
    bad_rows: Literal["fail", "skip"] = "fail"
    staging_ttl_ms: int = 86_400_000

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> WriteOptions:
        """From what Spark was told by `.option(...)`."""
        given = _given(raw)
        if table(raw) != "jobs":
            raise InvalidOption("table", "events", "'jobs' where rows are written: events are written by queues only")
        return cls(
            url=given.get("url"),
            prefix=_prefix(given),
            queue=_one_queue(given),
            task=_label(given, "task"),
            data_column=_label(given, "dataColumn"),
            write_id=_label(given, "writeId"),
            bad_rows=cast("Literal['fail', 'skip']", _one_of(given, "badRows", "fail", "skip")),
            staging_ttl_ms=1000 * _whole(given, "stagingTtl", "86400", least=1),
        )


def named_queues(chosen: QueueChoice) -> tuple[str, ...]:
    """The queues of a choice that has names only."""
    if chosen.is_open:
        raise InvalidOption("queue", ", ".join(chosen.words), "names of queues: patterns are still to come")
    return chosen.names


def table(raw: Mapping[str, str]) -> Literal["jobs", "events"]:
    """Which of the tables is meant: jobs, if nothing is said."""
    return cast("Literal['jobs', 'events']", _one_of(_given(raw), "table", "jobs", "events"))


def _given(raw: Mapping[str, str]) -> dict[str, str]:
    """By names in small letters, as Spark does not tell them apart; no name that nobody knows."""
    known = {name.lower() for name in NAMES}
    for name in raw:
        if name.lower() not in known and not OF_SPARK.fullmatch(name.lower()):
            raise UnknownOption(name)
    return {name.lower(): value for name, value in raw.items()}


def _one_of(given: Mapping[str, str], option: str, *words: str) -> str:
    value = given.get(option.lower(), words[0])
    if value.lower() not in words:
        raise InvalidOption(option, value, " or ".join(map(repr, words)))
    return value.lower()


def _whole(given: Mapping[str, str], option: str, default: str, *, least: int) -> int:
    value = given.get(option.lower(), default)
    if not re.fullmatch("[0-9]{1,15}", value) or int(value) < least:
        raise InvalidOption(option, value, f"a whole number of {least} or more, such as 100000")
    return int(value)


def _label(given: Mapping[str, str], option: str) -> str | None:
    value = given.get(option.lower())
    return None if value is None else check_label(option, value)


def _prefix(given: Mapping[str, str]) -> str:
    return check_queue_name(given.get("prefix", "skep"), "prefix")


def _one_queue(given: Mapping[str, str]) -> str:
    if "queue" not in given:
        raise InvalidOption("queue", given.get("queues", given.get("path")), QUEUE_HINT)
    if "*" in given["queue"]:
        raise InvalidOption(
            "queue", given["queue"], "one name where rows are written, such as 'mail': `*` is for reading"
        )
    return check_queue_name(given["queue"], "queue")


def _queues(given: Mapping[str, str]) -> QueueChoice:
    words = [given["queue"]] if "queue" in given else []
    words += _list(given, "queues", QUEUES_EXAMPLE)
    if not words:
        raise InvalidOption("queue", given.get("path"), f"{QUEUE_HINT}; '*' means all queues")
    return QueueChoice(tuple(dict.fromkeys(check_queue_name(word, "queue") for word in words)))


def _list_of_labels(given: Mapping[str, str], option: str) -> tuple[str, ...]:
    words = _list(given, option, f"one {option}, some with commas between, or a JSON list of them")
    return tuple(check_label(option, word) for word in words)


def _statuses(given: Mapping[str, str]) -> tuple[JobState, ...]:
    example = f"some of {', '.join(JobState)}"
    words = [ALIASES.get(word, word) for word in _list(given, "status", example)]
    if not set(words) <= set(JobState):
        raise InvalidOption("status", given["status"], example)
    return tuple(map(JobState, words))


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_list(given, "columns", "names of columns with commas between, such as 'id,status'"))


def _list(given: Mapping[str, str], option: str, example: str) -> list[str]:
    value = given.get(option)
    if value is None:
        return []
    words = _json_list(value) if value.startswith("[") else [word.strip() for word in value.split(",")]
    if not words or not all(words):
        raise InvalidOption(option, value, example)
    return words


def _json_list(value: str) -> list[str]:
    try:
        found = json.loads(value)
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else []
