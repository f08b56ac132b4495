"""Names, ids, labels and payloads of every kind of Unicode, through the whole API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skep import InvalidData, Queue
from skep.errors import InvalidName
from tests.support.faces import Faces
from tests.support.hand import Hand

Hands = Callable[..., Hand]

TEXTS = [
    "plain",
    "mit Leerzeichen und ümläuten",
    "蜂の巣",
    "🐝🏳️‍🌈",
    "عسل",
    "e\u0301 and \u00e9",
    "a:b{c}d[e]*?",
    "from",
    "\u202egnirts",
    "\U0010ffff",
    "0",
    "a\x00b\n\x7f",
    "'\"\\`$(x)%s",
]


@pytest.mark.parametrize("text", [each for each in TEXTS if not {"{", "\x00"} & {*each}])
def test_a_queue_may_have_any_name(faces: Faces, hand: Hands, text: str) -> None:
    queue = faces.make(text)
    job = queue.add(text)
    hand(name=text).succeed(text)

    assert (job.queue, job.result(timeout=5)) == (text, text)
    assert next(iter(queue.events(since=0))).queue == text


@pytest.mark.parametrize("text", TEXTS)
def test_ids_labels_tasks_and_reasons_may_be_any_text(queue: Queue, hand: Hands, text: str) -> None:
    worker = hand(text)
    job = queue.add({text: text}, id=text, name=text, task=text, meta={text: [text]})
    job.log(text)
    assert job.hold(reason=text) is True

    held = queue.get(text)
    assert held is not None
    assert (held.id, held.name, held.task, held.data, held.meta) == (text, text, text, {text: text}, {text: [text]})
    assert (held.status, held.reason) == ("held", text)
    assert [line.text for line in held.logs()] == [text]
    assert [each.id for each in queue.jobs(name=text)] == [text]
    assert queue.release([text]) == [text]
    worker.fail(text)
    with pytest.raises(Exception, match="ValueError"):
        job.result(timeout=5)
    events = list(job.events())
    assert {event.job for event in events} == {text}
    assert events[-1].details["error"].message == text


@pytest.mark.parametrize("text", ["", "\ud800", "x" * 201, "ä" * 101])
def test_what_cannot_be_an_id_is_refused_before_anything_is_sent(queue: Queue, text: str) -> None:
    for options in ({"id": text}, {"name": text}, {"task": text}):
        with pytest.raises(InvalidName):
            queue.add(1, **options)  # type: ignore[arg-type]

    assert queue.counts().total == 0


WORDS = st.text(st.characters(codec="utf-8"))
"""Half a character is no text: the last test says what becomes of it."""
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def worker(hand: Hands) -> Hand:
    """One for all examples."""
    return hand()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=JSON)
def test_any_json_comes_back_as_it_was_also_as_a_result(plain: Queue, worker: Hand, data: Any) -> None:
    job = plain.add(data)
    worker.succeed(data)

    found = plain.get(job.id)

    assert found is not None
    assert found.data == data
    assert job.result(timeout=5) == data


def test_half_a_character_is_no_text(queue: Queue) -> None:
    with pytest.raises(InvalidData):
        queue.add({"a": "\ud800"})

    assert queue.counts().total == 0
