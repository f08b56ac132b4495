"""The real scripts beside the model: the same random calls on both, compared after every one of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from skep.testing import Server
from tests.model import model as reference
from tests.model.world import World
from tests.support.engine import compact_server
from tests.support.mirror import Mirror


class Beside(World):
    """The world of the model's own checker, around a model that has a real queue beside it."""

    m: Mirror
    module: Any = SimpleNamespace(**vars(reference) | {"Model": Mirror})

    def restart(self, k: int) -> None:
        had = bool(self.history)
        super().restart(k)
        if had:
            self.m.restored()

    def teardown(self) -> None:
        try:
            if not self.m.real.apart:
                super().teardown()
        finally:
            self.m.real.engine.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with compact_server() as server:
        yield server


def explore(server: Server, examples: int, *, steps: int = 50, derandomize: bool = True, shrink: bool = True) -> None:
    """So many random histories."""
    Mirror.path = server.path
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=phases,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(Beside, settings=profile)


@pytest.mark.timeout(600)
def test_the_scripts_do_what_the_model_does_in_five_hundred_random_histories(server: Server) -> None:
    explore(server, 500)


@pytest.mark.timeout(0)
@pytest.mark.skipif("SKEP_ORACLE_MINUTES" not in os.environ, reason="says for how long: SKEP_ORACLE_MINUTES=60")
def test_the_scripts_do_what_the_model_does_for_as_long_as_asked(server: Server) -> None:
    end = time.monotonic() + 60 * float(os.environ["SKEP_ORACLE_MINUTES"])

    while time.monotonic() < end:
        explore(server, 200, derandomize=False)
