from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from skep import Queue
from tests.support.faces import Faces
from tests.support.hand import Hand


@pytest.fixture(params=["sync", "async"])
def faces(request: pytest.FixtureRequest, skep_url: str) -> Iterator[Faces]:
    made = Faces(request.param)
    yield made
    made.close()


@pytest.fixture
def queue(faces: Faces) -> Queue:
    """A queue of either kind, which behaves like a plain one."""
    return faces.make("mail")


@pytest.fixture
def plain(skep_url: str) -> Iterator[Queue]:
    """A queue of the plain kind."""
    with Queue("mail") as queue:
        yield queue


@pytest.fixture
def hand(skep_url: str) -> Iterator[Callable[..., Hand]]:
    """Makes workers that the test plays by hand."""
    made: list[Hand] = []

    def make(*knows: str, name: str = "mail") -> Hand:
        made.append(Hand(name, skep_url, *knows))
        return made[-1]

    yield make
    for each in made:
        each.close()
