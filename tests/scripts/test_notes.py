"""Progress and log lines: of runs that hold their lease, or about a job from anywhere."""

from __future__ import annotations

from skep import lifecycle, views
from skep.core.outcome import Retried, Succeeded
from tests.support.engine import Engine

ERROR = b'{"type":"Oops"}'


def log(engine: Engine, text: str, lease: bytes = b"", *, id: str = "x", most: int = 1000) -> str:
    return engine.twice(lifecycle.note(engine.keys, [(id, lease, "l", text, "info", most)]))


def texts(engine: Engine, id: str = "x") -> list[str]:
    return [text for _, _, text in engine.send(views.lines(engine.keys, id))[1]]


def test_only_so_many_of_the_newest_lines_are_kept(engine: Engine) -> None:
    engine.add("x")

    for n in range(50):
        log(engine, f"line {n}", most=10)

    assert texts(engine) == [f"line {n}" for n in range(40, 50)]
    assert engine.size("logs") == 11


def test_fewer_lines_are_kept_once_a_smaller_number_is_said(engine: Engine) -> None:
    engine.add("x")
    for n in range(20):
        log(engine, str(n), most=20)

    log(engine, "last", most=3)

    assert texts(engine) == ["18", "19", "last"]


def test_lines_can_be_read_on_from_the_last_one_seen(engine: Engine) -> None:
    engine.add("x")
    for n in range(5):
        log(engine, str(n))

    last, first = engine.send(views.lines(engine.keys, "x", count=3))
    end, rest = engine.send(views.lines(engine.keys, "x", after=last))

    assert [text for *_, text in first + rest] == list("01234")
    assert engine.send(views.lines(engine.keys, "x", after=end)) == (0, [])


def test_a_run_that_is_over_says_nothing_more(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    (run,) = engine.claim()
    while_it_runs = log(engine, "now", run.lease)
    engine.settle(run, Succeeded(b"1"))

    late = log(engine, "late", run.lease)
    progress = engine.twice(lifecycle.note(engine.keys, [("x", run.lease, "p", b"99", "", 0)]))

    assert (while_it_runs, late, progress) == ("y", "-", "-")
    assert texts(engine) == ["now"]
    assert engine.job("x").progress is None


def test_a_line_about_a_finished_job_says_from_anywhere_what_the_job_is(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    engine.settle(engine.claim()[0], Succeeded(b"1"))

    said = log(engine, "looked at by hand")
    unknown = log(engine, "who?", id="nobody")

    event = engine.events()[-1]
    assert (said, unknown) == ("y", "-")
    assert (event.type, event.status, event.details["value"]) == ("log", "succeeded", "looked at by hand")


def test_notes_of_a_later_run_name_that_run(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    engine.settle(engine.claim()[0], Retried(0, ERROR))
    (run,) = engine.claim()

    log(engine, "again", run.lease)

    assert engine.events()[-1].run == 2


def test_logs_stay_with_a_retried_job_and_go_with_a_new_life_and_with_the_job(engine: Engine) -> None:
    engine.join()
    engine.add("x")
    log(engine, "first life")
    engine.settle(engine.claim()[0], Succeeded(b"1"))
    engine.send(lifecycle.revive(engine.keys, [("x", None)]))
    after_retry = texts(engine)
    engine.settle(engine.claim()[0], Succeeded(b"1"))

    engine.add("x")

    assert (after_retry, texts(engine)) == (["first life"], [])
    log(engine, "second")
    engine.send(lifecycle.remove(engine.keys, [("x", None)]))
    assert engine.size("logs") == 0
