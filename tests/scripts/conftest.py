"""One server for all tests of scripts, and an engine with a queue of its own for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from skep.testing import Server
from tests.support.engine import Engine, compact_server

QUEUES = count(1)


@pytest.fixture(scope="package")
def server() -> Iterator[Server]:
    """Equal states have equal dumps here."""
    with compact_server() as server:
        yield server


@pytest.fixture
def engine(server: Server) -> Iterator[Engine]:
    """An empty queue at the given time of a million seconds."""
    engine = Engine(server.path, f"q{next(QUEUES)}")
    yield engine
    engine.close()


@pytest.fixture
def plain_engine(skep_server: Server) -> Iterator[Engine]:
    """The same on a server with ordinary settings, whose long hashes are tables."""
    engine = Engine(skep_server.path, f"q{next(QUEUES)}")
    yield engine
    engine.close()
