from __future__ import annotations

from typing import Any

import pytest
from redis._parsers.base import BaseParser
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LateReply

from skep.core.call import Call, Script
from skep.core.lanes import Fate
from skep.errors import (
    JobActive,
    JobExists,
    JobNotFound,
    QueueFull,
    ReservedId,
    ServerError,
    ServerFull,
    StaleJob,
    WrongData,
)
from skep.store.replies import answered, fate, queue_of, read, refusal

CALL: Call[bytes] = Call(Script("add", "", ""), ("skep:{a{b}:jobs",), (), bytes)


def said_by_the_server(text: str) -> Exception:
    parser: Any = BaseParser
    error: Exception = parser.parse_error(text)
    return error


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("LOADING Valkey is loading the dataset in memory", Fate.LATER),
        ("BUSY Valkey is busy running a script", Fate.LATER),
        ("READONLY You can't write against a read only replica.", Fate.LATER),
        ("MISCONF Errors writing to the AOF file", Fate.LATER),
        ("NOREPLICAS Not enough good replicas to write.", Fate.LATER),
        ("CLUSTERDOWN Hash slot not served", Fate.LATER),
        ("MASTERDOWN Link with MASTER is down", Fate.LATER),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Fate.LATER),
        ("MOVED 1 127.0.0.1:7000", Fate.LATER),
        ("ASK 1 127.0.0.1:7000", Fate.LATER),
        ("STALE a later call of this lane was answered", Fate.STRANGE),
        ("OLDLANE this lane is not known any more", Fate.STRANGE),
        ("OOM command not allowed when used memory > 'maxmemory'.", Fate.FINAL),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Fate.FINAL),
        ("WRONGPASS invalid username-password pair", Fate.FINAL),
        ("NOAUTH Authentication required.", Fate.FINAL),
        ("NOPERM User default has no permissions", Fate.FINAL),
        ("ERR user_script:5: attempt to index a nil value", Fate.FINAL),
    ],
)
def test_a_reply_tells_how_the_attempt_ended(text: str, wanted: Fate) -> None:
    error = said_by_the_server(text)

    assert fate(error) is wanted
    assert answered(error)


@pytest.mark.parametrize(
    "error", [LostConnection("closed"), LateReply("late"), OSError("gone"), FileNotFoundError("no socket")]
)
def test_no_reply_means_that_the_copy_is_lost(error: Exception) -> None:
    assert fate(error) is Fate.LOST
    assert not answered(error)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("OOM command not allowed", ServerFull),
        ("WRONGTYPE Operation against a key", WrongData),
        ("WRONGPASS invalid username-password pair", ServerError),
        ("ERR something else", ServerError),
    ],
)
def test_a_refusal_for_good_is_an_error_of_our_own(text: str, wanted: type[Exception]) -> None:
    error = refusal(said_by_the_server(text))

    assert type(error) is wanted
    assert text.partition(" ")[2] in str(error)


@pytest.mark.parametrize(
    ("reply", "wanted", "fields"),
    [
        (b"!QueueFull 1000", QueueFull, {"queue": "a{b", "limit": 1000}),
        (b"!JobExists an id", JobExists, {"id": "an id"}),
        (b"!JobActive an id", JobActive, {"id": "an id"}),
        (b"!JobNotFound an id", JobNotFound, {"id": "an id"}),
        (b"!ReservedId cron:x", ReservedId, {"id": "cron:x"}),
        ("!StaleJob 7 ä id".encode(), StaleJob, {"id": "ä id", "life": 7}),
        (b"!SomethingNew of a later release", ServerError, {}),
        (b"neither", WrongData, {}),
        ([b"a list"], WrongData, {}),
    ],
)
def test_a_kept_refusal_of_a_script_is_raised(reply: Any, wanted: type[Exception], fields: dict[str, Any]) -> None:
    with pytest.raises(wanted) as caught:
        read(CALL, reply)

    assert {name: getattr(caught.value, name) for name in fields} == fields


def test_an_answer_is_decoded_without_the_sign_before_it() -> None:
    assert read(CALL, b"=\x00=!") == b"\x00=!"


def test_the_reply_to_a_read_is_decoded_as_it_is() -> None:
    call = Call(CALL.script, CALL.keys, (), list[Any], laned=False)

    assert read(call, [b"!a", 1]) == [b"!a", 1]


def test_a_queue_is_known_by_the_braces_of_its_keys() -> None:
    assert queue_of(("skep:{mail}",)) == "mail"
    assert queue_of(()) == ""
