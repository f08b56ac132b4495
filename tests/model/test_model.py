from __future__ import annotations

from pathlib import Path

import pytest

from tests.model import model
from tests.model.check_model import MUTANTS, check, mutant

SOON_CAUGHT = [
    "cancel of A forgets T",
    "a renewal keeps runs the worker does not name",
    "a resend adds again",
    "a late copy is applied",
    "a return is a stall",
    "a stop request does not last",
    "pause does not stop claims",
    "a job starts early",
    "a backward step prolongs leases",
    "a resent claim takes more",
    "remove takes an active job",
]


def test_the_model_keeps_every_promise_through_thirty_random_histories() -> None:
    found = check(model, examples=30, derandomize=True)

    assert found == ""


@pytest.mark.parametrize("bug", MUTANTS)
def test_each_deliberate_bug_is_still_one_line_of_the_model(bug: str) -> None:
    right, wrong = MUTANTS[bug]

    assert Path(model.__file__).read_text(encoding="utf-8").count(right) == 1
    assert right != wrong


@pytest.mark.parametrize("bug", SOON_CAUGHT)
def test_the_checks_catch_a_plain_deliberate_bug_within_seconds(bug: str) -> None:
    broken = mutant(*MUTANTS[bug])

    found = check(broken, examples=2000, shrink=False, derandomize=True)

    assert found


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", MUTANTS)
def test_the_checks_catch_every_deliberate_bug_sooner_or_later(bug: str) -> None:
    broken = mutant(*MUTANTS[bug])

    found = check(broken, examples=5000, shrink=False, derandomize=True)

    assert found


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_model_keeps_every_promise_through_a_thousand_random_histories() -> None:
    found = check(model, examples=1000)

    assert found == ""
