"""How long a finished job is kept, as its task says it at the end of the run."""

from __future__ import annotations

import pytest

from skep.core.outcome import Cancelled, Failed, Outcome, Succeeded
from tests.support.engine import Engine

ERROR = b'{"type":"E"}'


@pytest.mark.parametrize("outcome", [Succeeded(b"1", keep=5000), Failed(ERROR, keep=5000), Cancelled(keep=5000)])
def test_a_job_is_kept_as_its_task_says_where_it_does_not_say_it_itself(engine: Engine, outcome: Outcome) -> None:
    engine.join()
    engine.add("a")
    engine.add("b", options={"keep": 9000})
    for run in engine.claim(slots=2):
        assert engine.settle(run, outcome)

    engine.now += 5000
    engine.upkeep()

    assert "a" not in engine.photo().jobs
    assert "b" in engine.photo().jobs


def test_a_task_that_keeps_nothing_leaves_nothing(engine: Engine) -> None:
    engine.join()
    engine.add("a")
    [run] = engine.claim()

    engine.settle(run, Succeeded(b"1", keep=0))

    assert "a" not in engine.photo().jobs
    assert engine.counts().total == 0


def test_jobs_of_a_task_that_keeps_for_ever_outlive_the_retention_of_the_queue(engine: Engine) -> None:
    engine.join()
    engine.add("a")
    [run] = engine.claim()
    engine.settle(run, Succeeded(b"1", keep=True))

    engine.now += 10 * 86_400_000
    engine.upkeep()

    assert engine.status("a") == "succeeded"
