"""Fixtures for pytest: say `pytest_plugins = ["skep.testing.fixtures"]` in `conftest.py`, take `skep_url`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skep.testing import Server


@pytest.fixture(scope="session")
def skep_server() -> Iterator[Server]:
    """A server of this test run's own, which ends with it: `.url`, `.stop()`, `.start()`, `.kill()`."""
    from skep.testing import Server  # not above: a run that wants no server loads no client

    with Server() as server:
        yield server


@pytest.fixture
def skep_url(skep_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Queues without a url, here and in processes that the test starts, lie in `skep_server`, emptied."""
    from skep.embedded.default import redirect, redirected

    if not skep_server.alive():  # the test before has tried what happens without
        skep_server.start()
    skep_server.empty()
    monkeypatch.setenv("SKEP_URL", skep_server.url)
    before = redirected()
    redirect(skep_server.url)
    yield skep_server.url
    redirect(before)
