"""Every script may be sent twice: the second time it gives the same answer and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import ResponseError

from skep import lifecycle, scripts, views
from skep.core.call import Call
from skep.core.outcome import Failed, Returned, Succeeded
from tests.support.engine import Engine, Refused, claim_of, draft

ERROR = b'{"type":"Oops"}'
Make = Callable[[Engine], Call[Any]]
X = [("x", None)]

CALLS: dict[str, Make] = {
    "add": lambda e: lifecycle.add(e.keys, draft("", generated=True), [("new1", b"1"), ("new2", b"2")]),
    "cancel": lambda e: lifecycle.cancel(e.keys, [*X, ("run", None)]),
    "claim": lambda e: claim_of(e.keys, "w", 2, 2, [""]),
    "configure": lambda e: lifecycle.configure(e.keys, {"retries": "3"}),
    "counts": lambda e: views.counts(e.keys),
    "decide": lambda e: lifecycle.decide(e.keys, "write", ["staged"], remember=60_000),
    "drop": lambda e: lifecycle.drop(e.keys),
    "edges": lambda e: views.edges(e.keys, [1, 99]),
    "expect": lambda e: views.expect(e.keys, [("x", 3)], ms=1000),
    "feed": lambda e: views.feed(e.keys, after=0),
    "fence": lambda e: Call(scripts.fence, e.keys.all, ("0" * 15 + "9",), bytes),
    "hold": lambda e: lifecycle.hold(e.keys, X),
    "join": lambda e: lifecycle.join(e.keys, "new", lease=30_000, info={}),
    "leave": lambda e: lifecycle.leave(e.keys, "w"),
    "leave_run": lambda e: lifecycle.leave_run(e.keys, "w", [(e.lately[0], Succeeded(b"1"))]),
    "lines": lambda e: views.lines(e.keys, "x"),
    "look": lambda e: views.look(e.keys, ["x"]),
    "move": lambda e: lifecycle.move(e.keys),
    "note": lambda e: lifecycle.note(e.keys, [("x", b"", "l", "line", "info", 9), ("x", b"", "p", b"1", "", 0)]),
    "now": lambda e: views.now(e.keys),
    "page": lambda e: views.page(e.keys, "jobs", "0", 10),
    "pause": lambda e: lifecycle.pause(e.keys, wanted=True),
    "promote": lambda e: lifecycle.promote(e.keys, [("later", None)]),
    "reader": lambda e: lifecycle.reader(e.keys, "lake", 3),
    "readers": lambda e: views.readers(e.keys),
    "redact": lambda e: lifecycle.redact(e.keys, [("over", None)]),
    "release": lambda e: lifecycle.release(e.keys, [("held", None)]),
    "remove": lambda e: lifecycle.remove(e.keys, [*X, ("later", None), ("held", None), ("over", None)]),
    "renew": lambda e: lifecycle.renew(e.keys, "w", lease=30_000, answered=1, runs=[]),
    "revive": lambda e: lifecycle.revive(e.keys, [("over", None)]),
    "settings": lambda e: views.settings(e.keys),
    "schedules": lambda e: views.schedules(e.keys, "0"),
    "stats": lambda e: views.load(e.keys),
    "stage": lambda e: lifecycle.stage_each(e.keys, "token", ttl=60_000, drafts=[draft("s")]),
    "update": lambda e: lifecycle.update(e.keys, X, data=b"9", delay=1000),
    "upkeep": lambda e: lifecycle.upkeep(e.keys),
    "upsert": lambda e: lifecycle.upsert(e.keys, [draft("x", 2), draft("run", 3), draft("new", 4)]),
    "walk": lambda e: views.walk(e.keys),
    "workers": lambda e: views.workers(e.keys),
    "written": lambda e: views.written(e.keys, "write"),
}


def furnish(engine: Engine) -> None:
    """A job in every state, and rows that are staged."""
    engine.join()
    for id in ("over", "run", "x", "held"):
        engine.add(id, id)
    engine.add("later", delay=1000)
    over, run = engine.claim(slots=2)
    engine.settle(over, Failed(ERROR))
    engine.send(lifecycle.hold(engine.keys, [("held", None)]))
    engine.send(lifecycle.stage_each(engine.keys, "staged", ttl=60_000, drafts=[draft("row")]))
    engine.lately = [run]


@pytest.mark.parametrize(
    "script", sorted(path.name[:-4] for path in scripts.folder().iterdir() if path.name.endswith(".lua"))
)
def test_a_script_that_is_sent_twice_changes_nothing_the_second_time(engine: Engine, script: str) -> None:
    furnish(engine)
    call = CALLS[script](engine)

    engine.twice(call)

    assert call.script.name == script


CHANGES = sorted(
    CALLS.keys() - {"claim", "join", "leave", "renew", "upkeep", "move", "reader", "fence"} - set(dir(views))
)


@pytest.mark.parametrize("script", CHANGES)
def test_a_late_copy_of_an_overtaken_call_is_refused_and_changes_nothing(engine: Engine, script: str) -> None:
    furnish(engine)
    call = CALLS[script](engine)
    if not call.laned:
        pytest.skip("it goes without a lane")
    number = engine.numbers["x"]
    engine.send(lifecycle.hold(engine.keys, []))
    before = engine.photo()

    with pytest.raises(ResponseError, match="STALE"):
        engine.raw(call, engine.say(number=number))

    assert engine.photo().dumps == before.dumps


@pytest.mark.parametrize("script", CHANGES)
def test_a_lane_that_nobody_can_know_any_more_is_refused_and_changes_nothing(engine: Engine, script: str) -> None:
    furnish(engine)
    call = CALLS[script](engine)
    if not call.laned:
        pytest.skip("it goes without a lane")
    born = engine.now // 1000 - 3601
    before = engine.photo()

    with pytest.raises(ResponseError, match="OLDLANE"):
        engine.raw(call, engine.say("old", birth=born))

    assert engine.photo().dumps == before.dumps


def test_a_resend_tells_the_first_answer_whatever_has_become_of_the_id_since(engine: Engine) -> None:
    add = lifecycle.upsert(engine.keys, [draft("x", 1)])
    first = engine.send(add, "a")
    engine.join()
    engine.settle(engine.claim()[0], Succeeded(b"1"))
    engine.send(lifecycle.remove(engine.keys, X), "b")
    engine.add("x", "another")

    again = engine.send(add, "a", number=1)

    assert again == first
    assert engine.job("x").head.data == b'"another"'


def test_a_resent_cancel_leaves_alone_what_came_later_under_the_id(engine: Engine) -> None:
    engine.add("x")
    cancel = lifecycle.cancel(engine.keys, X)
    engine.send(cancel, "a")
    engine.add("x")

    again = engine.send(cancel, "a", number=1)

    assert again == ["x"]
    assert engine.status("x") == "waiting"


def test_a_refusal_stays_one_when_its_reason_is_gone(engine: Engine) -> None:
    engine.add("x")
    add = lifecycle.upsert(engine.keys, [draft("x", conflict="raise")])
    with pytest.raises(Refused, match="JobExists"):
        engine.send(add, "a")
    engine.send(lifecycle.remove(engine.keys, X), "b")

    with pytest.raises(Refused, match="JobExists"):
        engine.send(add, "a", number=1)

    assert engine.status("x") == ""


def test_a_fence_tells_what_became_of_a_given_up_call_and_keeps_late_copies_out(engine: Engine) -> None:
    add = lifecycle.upsert(engine.keys, [draft("x")])
    for number, sent in ((1, True), (3, False)):
        if sent:
            engine.send(add, "a", number=number)
        kept = engine.twice_in(Call(scripts.fence, engine.keys.all, (f"{number:016d}",), bytes), "a", number + 1)

        assert (kept != b"") is sent
        with pytest.raises(ResponseError, match="STALE"):
            engine.raw(add, engine.say("a", number))


def test_lanes_are_forgotten_two_hours_after_their_last_call(engine: Engine) -> None:
    for n in range(100):
        engine.send(lifecycle.hold(engine.keys, []), f"lane{n}")
    engine.now = engine.now + 7_200_000
    engine.send(lifecycle.hold(engine.keys, []), "young")
    engine.now += 1

    for _ in range(100):
        engine.upkeep()

    assert engine.size("lanes") == 1


def test_a_resend_that_waits_for_copies_writes_the_kept_answer_again(engine: Engine) -> None:
    call, said = lifecycle.hold(engine.keys, []), engine.say("a", mark="+")
    first = engine.raw(call, said)
    before = engine.photo()
    engine.now = engine.now + 5

    again = engine.raw(call, said)

    assert again == first
    assert engine.photo()["lanes"] != before["lanes"], "WAIT counts from the last write of its own connection"
    assert engine.photo().but("lanes") == before.but("lanes")


def test_an_end_of_a_run_may_be_said_again_in_a_new_lane(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    (run,) = engine.claim()
    engine.settle(run, Returned())
    before = engine.photo()

    again = engine.send(lifecycle.leave_run(engine.keys, "w", [(run, Returned())]), "another")

    assert again == [False]
    assert engine.photo() == before
