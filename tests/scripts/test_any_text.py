"""Ids, tasks, labels and payloads of every kind of Unicode and size come out as they went in."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skep import lifecycle, views
from skep.core.outcome import Failed, Retried, Succeeded
from skep.testing import Server
from tests.support.engine import Engine

NAMES = count(1)
ERROR = b'{"type":"Oops"}'


def short(text: str) -> bool:
    return 0 < len(text.encode()) <= 200


UNICODE = st.characters(exclude_categories=["Cs"])
TEXT = st.one_of(
    st.text(UNICODE, min_size=1, max_size=50).filter(short),
    st.text("0 1:{}%\\\"'\n\t\x00-+@A|", min_size=1, max_size=20),
    st.sampled_from(["from", "at", "0", "10x", "é" * 100, "\x00", "𝔘" * 50, "a\u0301", "\u202e", "x" * 200]),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(UNICODE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(UNICODE), inner, max_size=4),
    max_leaves=10,
)


@settings(
    max_examples=150, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(id=TEXT, task=TEXT | st.just(""), name=TEXT, meta=JSON, data=JSON, reason=st.text(UNICODE, max_size=50))
def test_a_job_comes_out_of_every_state_as_it_went_in(
    server: Server, id: str, task: str, name: str, meta: object, data: object, reason: str
) -> None:
    engine = Engine(server.path, f"text{next(NAMES)}")
    text, more = msgspec.json.encode(data), msgspec.json.encode(meta)
    options = {"name": name, "meta": more.decode()}
    try:
        engine.join()
        engine.add(id, data, task=task, options=options)
        engine.send(lifecycle.hold(engine.keys, [(id, None)], reason=reason or "by hand"))
        held = engine.job(id)
        engine.send(lifecycle.release(engine.keys, [(id, None)]))
        engine.settle(engine.claim(knows=[task])[0], Retried(0, ERROR))
        (run,) = engine.claim(knows=[task])
        found = engine.send(views.page(engine.keys, f"name:{name}", "0", 10))
        engine.settle(run, Succeeded(text))

        job = engine.job(id)
        assert held.reason == (reason or "by hand")
        assert run.id == id
        assert found == ("0", [id])
        assert (job.head.task, job.head.options, job.head.data, job.result) == (task, options, text, text)
        assert {event.job for event in engine.events()} == {"", id}
        assert {event.head.task for event in engine.events() if event.job} == {task}
        added, ended = engine.events()[1], engine.events()[-1]
        assert (added.details["data"].encode(), ended.details["result"].encode()) == (text, text)
    finally:
        engine.close()


@settings(max_examples=60, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(TEXT, min_size=2, max_size=12, unique=True), task=TEXT)
def test_ids_that_look_alike_are_never_taken_for_each_other(server: Server, ids: list[str], task: str) -> None:
    engine = Engine(server.path, f"text{next(NAMES)}")
    try:
        engine.join()
        for id in ids:
            engine.add(id, id, options={"name": id[:20]})
        gone = ids[::2]
        assert engine.send(lifecycle.remove(engine.keys, [(id, None) for id in gone])) == gone
        for id in gone:
            engine.add(id, id, task=task)

        taken = [run.id for run in engine.claim(slots=50)]
        aside = [run.id for run in engine.claim(slots=50, knows=[task])]

        assert taken == ids[1::2]
        assert sorted(aside) == sorted(gone)
        assert all(engine.job(id).head.data == msgspec.json.encode(id) for id in ids)
    finally:
        engine.close()


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 16_383, 16_384, 65_535, 65_536, 1_000_000])
def test_payloads_of_every_size_travel_through_every_place(plain_engine: Engine, size: int) -> None:
    engine, value = plain_engine, "é" * (size // 2)
    text = msgspec.json.encode(value)
    engine.join()
    engine.add("x", value)
    engine.add_plain("y", data=value)
    first, second = engine.claim(slots=2)
    engine.add("x", value)
    engine.settle(first, Failed(b'{"type":"E","message":' + text + b"}"))
    engine.settle(second, Succeeded(text))

    error = engine.job("x").known.previous
    twin, other = engine.job("x"), engine.job("y")

    assert error is not None
    assert (twin.head.data, other.head.data, other.result) == (text, text, text)
    assert len(engine.events()) == 9
