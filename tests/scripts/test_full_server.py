"""A server that has reached its `maxmemory`: nothing comes in, and all that is there can drain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis.exceptions import OutOfMemoryError

from skep import lifecycle, scripts
from skep.core.outcome import Failed, Retried, Succeeded
from tests.support.engine import Engine, Refused, compact_server, draft

ERROR = b'{"type":"Oops"}'


@pytest.fixture
def full() -> Iterator[Engine]:
    """A worker with runs a to f, jobs g to z that wait, x later, and no byte left."""
    with compact_server() as server:
        engine = Engine(server.path, "q")
        engine.join()
        for id in "abcdefghijklmnopqrstuvwyz":
            engine.add(id, id)
        engine.add("x", delay=1000)
        engine.claim(slots=6)
        engine.add_plain("warm")  # the script is known to the server
        engine.send(lifecycle.note(engine.keys, []))
        for script in ("update", "upkeep", "renew", "leave", "cancel", "remove", "promote", "hold", "release"):
            engine.sha(scripts.load(script))
        server.config_set(maxmemory=1)
        yield engine
        server.config_set(maxmemory=0)
        engine.connection.disconnect()


def test_adds_are_refused_whole_and_nothing_of_them_is_left(full: Engine) -> None:
    before = full.photo()

    for call in (
        lifecycle.add(full.keys, draft("", generated=True), [("new1", b"1"), ("new2", b"2")]),
        lifecycle.upsert(full.keys, [draft("new1", 1), draft("new2", 2, options={"name": "n"})]),
    ):
        with pytest.raises(OutOfMemoryError):
            full.send(call)

    assert full.photo().dumps == before.dumps


def test_growing_updates_and_notes_are_refused_and_change_nothing(full: Engine) -> None:
    before = full.photo()
    lease = full.lately[0].lease

    for call in (
        lifecycle.update(full.keys, [("g", None)], data=b'"' + b"x" * 1000 + b'"'),
        lifecycle.note(full.keys, [("a", lease, "p", b"50", "", 0)]),
        lifecycle.note(full.keys, [("a", lease, "l", "line", "info", 10)]),
    ):
        with pytest.raises(OutOfMemoryError):
            full.send(call)

    assert full.photo().dumps == before.dumps


def test_a_refusal_that_depends_on_the_state_is_kept_also_on_a_full_server(full: Engine) -> None:
    with pytest.raises(Refused, match="JobExists g"):
        full.twice(lifecycle.upsert(full.keys, [draft("g", conflict="raise")]))

    with pytest.raises(Refused, match="JobActive a"):
        full.twice(lifecycle.update(full.keys, [("a", None)], data=b"1"))


def test_work_goes_on_and_the_queue_drains_on_a_full_server(full: Engine) -> None:
    runs = {run.id: run for run in full.lately}
    assert full.settle(runs["a"], Succeeded(b"1"))
    assert full.settle(runs["b"], Failed(ERROR))
    assert full.settle(runs["c"], Retried(0, ERROR))
    assert full.settle(runs["d"], Retried(500, ERROR))
    assert full.renew("w", [runs["e"], runs["f"]]) is not None
    full.now = full.now + 2000
    full.upkeep()

    claimed = 0
    while found := full.claim(slots=5):
        claimed += len(found)
        full.send(lifecycle.leave_run(full.keys, "w", [(run, Succeeded(b"1")) for run in found]))

    counts = full.counts()
    assert claimed == 23
    assert (counts.active, counts.waiting, counts.failed) == (2, 0, 1)


def test_steering_that_does_not_grow_works_on_a_full_server(full: Engine) -> None:
    def ask(call: object) -> object:
        return full.twice(call)  # type: ignore[arg-type]

    assert ask(lifecycle.cancel(full.keys, [("a", None), ("g", None)])) == ["a", "g"]
    assert ask(lifecycle.hold(full.keys, [("h", None)])) == ["h"]
    assert ask(lifecycle.release(full.keys, [("h", None)])) == ["h"]
    assert ask(lifecycle.promote(full.keys, [("x", None)])) == ["x"]
    assert ask(lifecycle.remove(full.keys, [("i", None)])) == ["i"]
    full.send(lifecycle.leave(full.keys, "w"))

    assert full.counts().active == 0
