"""Every operation in every state, alone and said twice: what it answers, and where it leaves the job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from skep import lifecycle
from skep.core.call import Call
from skep.core.outcome import Cancelled, Failed, Retried, Succeeded
from tests.support.engine import Engine, Refused, draft

ERROR = b'{"type":"Oops","message":"no"}'
MINUTE = 60_000
Target = tuple[str, int | None]


def waiting(engine: Engine) -> None:
    engine.add("x", 1)


def scheduled(engine: Engine) -> None:
    engine.add("x", 1, delay=MINUTE)


def retrying(engine: Engine) -> None:
    active(engine)
    engine.settle(engine.lately[0], Retried(MINUTE, ERROR))


def held(engine: Engine) -> None:
    waiting(engine)
    engine.send(lifecycle.hold(engine.keys, [("x", None)]))


def set_aside(engine: Engine) -> None:
    engine.join()
    engine.add("x", 1, task="unheard-of")
    engine.claim()


def active(engine: Engine) -> None:
    engine.join()
    waiting(engine)
    engine.claim()


def blocked(engine: Engine) -> None:
    active(engine)
    engine.add("x", 2)


def succeeded(engine: Engine) -> None:
    active(engine)
    engine.settle(engine.lately[0], Succeeded(b"7"))


def failed(engine: Engine) -> None:
    active(engine)
    engine.settle(engine.lately[0], Failed(ERROR))


def cancelled(engine: Engine) -> None:
    active(engine)
    engine.settle(engine.lately[0], Cancelled())


STATES: dict[str, Callable[[Engine], None]] = {
    "nothing": lambda engine: None,
    "waiting": waiting,
    "scheduled": scheduled,
    "retrying": retrying,
    "held": held,
    "set aside": set_aside,
    "active": active,
    "blocked": blocked,
    "succeeded": succeeded,
    "failed": failed,
    "cancelled": cancelled,
}
STEERING: dict[str, Callable[[Engine, list[Target]], Call[list[str]]]] = {
    "update data": lambda engine, targets: lifecycle.update(engine.keys, targets, data=b"9"),
    "update task": lambda engine, targets: lifecycle.update(engine.keys, targets, task="other"),
    "update time": lambda engine, targets: lifecycle.update(engine.keys, targets, delay=2 * MINUTE),
    "update priority": lambda engine, targets: lifecycle.update(engine.keys, targets, options={"priority": 10}),
    "update name": lambda engine, targets: lifecycle.update(engine.keys, targets, options={"name": "n"}),
    "update meta": lambda engine, targets: lifecycle.update(engine.keys, targets, options={"meta": "1"}),
    "update nothing": lambda engine, targets: lifecycle.update(engine.keys, targets),
    "cancel": lambda engine, targets: lifecycle.cancel(engine.keys, targets),
    "cancel keep=0": lambda engine, targets: lifecycle.cancel(engine.keys, targets, keep=0),
    "cancel active=False": lambda engine, targets: lifecycle.cancel(engine.keys, targets, active=False),
    "hold": lambda engine, targets: lifecycle.hold(engine.keys, targets),
    "release": lambda engine, targets: lifecycle.release(engine.keys, targets),
    "promote": lambda engine, targets: lifecycle.promote(engine.keys, targets),
    "retry": lambda engine, targets: lifecycle.revive(engine.keys, targets),
    "remove": lambda engine, targets: lifecycle.remove(engine.keys, targets),
    "redact": lambda engine, targets: lifecycle.redact(engine.keys, targets),
}
# Per operation, where it leaves a job of each state; "-": it answers False and leaves it there; "!": it is refused.
# Order: waiting, scheduled, retrying, held, set aside, active, blocked, succeeded, failed, cancelled.
IN_ORDER = list(STATES)[1:]
TABLE: dict[str, list[str]] = {
    name: line.split()
    for name, line in {
        "update data": "waiting scheduled retrying held held JobActive blocked - - -",
        "update task": "waiting scheduled retrying held held JobActive blocked - - -",
        "update time": "scheduled scheduled retrying held held JobActive blocked - - -",
        "update priority": "waiting scheduled retrying held held active blocked - - -",
        "update name": "waiting scheduled retrying held held active blocked - - -",
        "update meta": "waiting scheduled retrying held held active blocked succeeded failed cancelled",
        "update nothing": "waiting scheduled retrying held held active blocked - - -",
        "cancel": "cancelled cancelled cancelled cancelled cancelled active gone - - -",
        "cancel keep=0": "gone gone gone gone gone active gone - - -",
        "cancel active=False": "cancelled cancelled cancelled cancelled cancelled - gone - - -",
        "hold": "held held held - - - - - - -",
        "release": "- - - waiting waiting - - - - -",
        "promote": "- waiting waiting - - - - - - -",
        "retry": "- - - - - - - waiting waiting waiting",
        "remove": "gone gone gone gone gone - gone gone gone gone",
        "redact": "- - - - - - - succeeded failed cancelled",
    }.items()
}
CELLS = [
    (name, state, cell)
    for name, line in TABLE.items()
    for state, cell in [("nothing", "-"), *zip(IN_ORDER, line, strict=True)]
]


def standing(engine: Engine, state: str) -> str:
    """Where the job is; of a twin, whether it is there."""
    job = engine.photo().jobs.get("x")
    if state == "blocked":
        return "blocked" if job and job.twin else "gone"
    return str(job.status) if job else "gone"


def target(engine: Engine, state: str) -> Target:
    """The id, or the twin's handle."""
    twin = engine.photo().jobs["x"].twin if state == "blocked" else None
    return ("x", twin.life if twin else None)


@pytest.mark.parametrize(("operation", "state", "cell"), CELLS, ids=[f"{a} / {b}" for a, b, _ in CELLS])
def test_each_operation_does_in_each_state_what_the_table_says(
    engine: Engine, operation: str, state: str, cell: str
) -> None:
    STATES[state](engine)
    before, was = engine.photo(), standing(engine, state)
    call = STEERING[operation](engine, [target(engine, state)])

    answer: Any
    try:
        answer = engine.twice(call)
    except Refused as refusal:
        answer = refusal.word

    if cell == "-":
        assert answer == []
        assert engine.photo().but("lanes") == before.but("lanes")
    elif cell[0].isupper():
        assert answer == cell
        assert engine.photo().but("lanes") == before.but("lanes")
    else:
        assert answer == ["x"]
        assert standing(engine, state) == cell
        assert was == standing(engine, state) or engine.events(), "a change leaves an event"


@pytest.mark.parametrize("state", [state for state in STATES if state not in ("nothing", "blocked")])
def test_a_handle_of_a_life_that_is_over_is_refused_in_every_state(engine: Engine, state: str) -> None:
    STATES[state](engine)
    before = engine.photo()

    with pytest.raises(Refused, match="StaleJob 77 x"):
        engine.twice(lifecycle.cancel(engine.keys, [("x", 77)]))

    assert engine.photo().but("lanes") == before.but("lanes")


ADDS: dict[str, dict[str, Any]] = {
    "update": {},
    "ignore": {"conflict": "ignore"},
    "raise": {"conflict": "raise"},
    "unique": {"conflict": "unique"},
}
UNFINISHED = ["waiting", "scheduled", "retrying", "held", "set aside", "active", "blocked"]


def added(conflict: str, state: str) -> str:
    """What an add answers."""
    if state == "nothing":
        return "added"
    if conflict == "raise":
        return "JobExists"
    if conflict == "ignore" or (conflict == "unique" and state in UNFINISHED):
        return "ignored"
    return "blocked" if state == "active" else "updated" if state in UNFINISHED else "added"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("conflict", ADDS)
def test_an_add_meets_each_state_as_its_on_conflict_says(engine: Engine, conflict: str, state: str) -> None:
    STATES[state](engine)
    expected = added(conflict, state)
    call = lifecycle.upsert(engine.keys, [draft("x", 5, **ADDS[conflict])])

    try:
        answer = engine.twice(call)[0].outcome
    except Refused as refusal:
        answer = refusal.word  # type: ignore[assignment]

    assert answer == expected
    job = engine.photo().jobs["x"]
    if expected == "updated" and state != "blocked":
        assert job.head.data == b"5"
    if state in ("active", "blocked"):
        assert job.head.data == b"1"
    if expected == "added" and state != "nothing":
        assert job.known.previous is not None
        assert job.known.previous.status == state


@pytest.mark.parametrize("state", [*UNFINISHED, "succeeded"])
def test_dropping_takes_every_job_whatever_its_state(engine: Engine, state: str) -> None:
    STATES[state](engine)
    unfinished = {"succeeded": 0, "blocked": 2}.get(state, 1)

    live = engine.twice(lifecycle.drop(engine.keys))

    assert live == unfinished
    assert engine.counts().total == 0
    assert engine.events()[-1].details["live"] == unfinished


def test_a_cancelled_run_takes_its_twin_along_unless_only_what_waits_is_meant(engine: Engine) -> None:
    blocked(engine)

    engine.send(lifecycle.cancel(engine.keys, [("x", None)], active=False))

    assert engine.job("x").twin is None
    assert not engine.job("x").stop


def test_a_cancel_by_the_handle_of_the_run_leaves_its_twin_alone(engine: Engine) -> None:
    blocked(engine)
    run = engine.job("x").head.life

    engine.send(lifecycle.cancel(engine.keys, [("x", run)]))

    assert engine.job("x").twin is not None
    assert engine.job("x").stop


@pytest.mark.parametrize("operation", STEERING)
@pytest.mark.parametrize("state", ["waiting", "retrying", "held", "active", "blocked", "failed"])
def test_a_job_that_is_named_twice_in_one_call_is_changed_as_if_in_two(
    engine: Engine, operation: str, state: str
) -> None:
    STATES[state](engine)
    aim = target(engine, state)
    start = engine.photo()
    for _ in range(2):
        with suppress(Refused):
            engine.send(STEERING[operation](engine, [aim]))
    apart = engine.photo()
    engine.restore(start)

    with suppress(Refused):
        engine.twice(STEERING[operation](engine, [aim, aim]))

    assert engine.photo().but("lanes", "events", "queue") == apart.but("lanes", "events", "queue")
    assert engine.photo().stale == apart.stale


def test_a_later_cancel_without_keep_leaves_the_first_ones_keep(engine: Engine) -> None:
    active(engine)
    engine.send(lifecycle.cancel(engine.keys, [("x", None)], keep=0))

    engine.send(lifecycle.cancel(engine.keys, [("x", None)]))
    engine.settle(engine.lately[0], Failed(ERROR))

    assert engine.status("x") == ""


def test_a_redacted_job_keeps_its_end_and_loses_what_it_carried(engine: Engine) -> None:
    failed(engine)

    engine.send(lifecycle.redact(engine.keys, [("x", None)]))

    job = engine.job("x")
    assert job.head.data == b"null"
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("Oops", "")
