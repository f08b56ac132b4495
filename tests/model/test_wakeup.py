from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.model.wakeup import BUGS, ENDLESS, HOPELESS, LATE, LOST, Budget, Found, Protocol, State, Worker, explore


@dataclass(frozen=True)
class World:
    """Workers, each with its cap (negative: it does not know the odd task), and what may happen."""

    caps: tuple[int, ...]
    budget: Budget
    wire: bool = False

    def explored(self, bug: str = "") -> Found:
        workers = tuple(Worker(cap=abs(cap), knows=cap > 0) for cap in self.caps)
        return explore(Protocol(bug=bug, fifo=bool(self.budget.odd), wire=self.wire), State(workers, self.budget))


WORLDS = {
    "ready and delayed": World((1, 1), Budget(ready=2, delayed=(1, 2))),
    "two slots": World((1, 2), Budget(ready=2, delayed=(1, 2))),
    "three workers": World((1, 1, 1), Budget(ready=2, delayed=(1,))),
    "skips": World((1, 1), Budget(ready=1, delayed=(1, 2), skips=1)),
    "skips with two slots": World((1, 2), Budget(ready=2, delayed=(1,), skips=1)),
    "cancels": World((1, 1), Budget(ready=1, delayed=(1, 2), cancels=1)),
    "pauses": World((1, 1), Budget(ready=1, delayed=(1,), pauses=2)),
    "shuts": World((1, 1), Budget(ready=1, delayed=(1,), shuts=2)),
    "deaths": World((1, 1), Budget(ready=1, delayed=(1,), deaths=1), wire=True),
    "two deaths": World((1, 1, 1), Budget(ready=1, delayed=(1,), deaths=2)),
    "fences": World((1, 1), Budget(ready=1, delayed=(1,), fences=1)),
    "resends": World((1, 1), Budget(ready=1, delayed=(1,), resends=1), wire=True),
    "aside": World((1, -1), Budget(ready=1, odd=2)),
    "aside among three": World((1, -1, -1), Budget(odd=2)),
    "aside and nobody knows": World((-1, -1), Budget(odd=2, delayed=(1,))),
    "aside with deaths": World((1, -1, -1), Budget(odd=1, deaths=1)),
    "aside with pauses": World((1, -1), Budget(odd=2, pauses=2)),
}
"""In which each bug is found, and the protocol is right. They take half a second each."""

LARGE = {
    "all at once": World((1, 2), Budget(ready=2, delayed=(1, 2), skips=1, cancels=1, pauses=2)),
    "three workers, five jobs": World((1, 1, 2), Budget(ready=3, delayed=(1, 2))),
    "four workers": World((1, 1, 1, 1), Budget(ready=2, delayed=(1, 2))),
    "skips": World((1, 1, 2), Budget(ready=2, delayed=(1, 2), skips=2)),
    "claims on their way": World((1, 1), Budget(ready=2, delayed=(1, 2), skips=1), wire=True),
    "shuts": World((1, 2), Budget(ready=2, delayed=(1, 2), shuts=3, pauses=2)),
    "deaths": World((1, 1, 1), Budget(ready=1, delayed=(1,), deaths=2), wire=True),
    "deaths of two slots": World((1, 2, 2), Budget(ready=2, delayed=(1, 2), deaths=2)),
    "fences": World((1, 1), Budget(ready=1, delayed=(1,), fences=1), wire=True),
    "resends": World((1, 1), Budget(ready=1, delayed=(1, 2), resends=2), wire=True),
    "aside": World((1, 2, -1), Budget(ready=1, odd=3)),
    "aside with all": World((1, -1), Budget(ready=1, odd=2, delayed=(1,), deaths=1, pauses=2)),
}

CAUGHT = {
    "full drops the marker": ("ready and delayed", LOST),
    "skips taken for drained": ("skips", LOST),
    "head 0 keeps the duty": ("skips", LOST),
    "resend forgets the time": ("resends", LOST),
    "fenced drops the marker": ("fences", LOST),
    "leave tells nobody": ("deaths", LOST),
    "resume tells nobody": ("pauses", LOST),
    "later due wakes": ("ready and delayed", LOST),
    "renewals tell nobody": ("deaths", HOPELESS),
    "aside tells nobody": ("aside", LATE),
    "asking without end": ("aside and nobody knows", ENDLESS),
    "asking half of them": ("aside among three", LATE),
}


@pytest.mark.parametrize("world", WORLDS)
def test_whoever_has_room_is_woken_in_every_order_of_events(world: str) -> None:
    found = WORLDS[world].explored()

    assert found.states > 1000
    assert found.losses == []


@pytest.mark.parametrize("bug", BUGS)
def test_the_model_finds_each_bug_that_is_put_back(bug: str) -> None:
    world, what = CAUGHT[bug]

    found = WORLDS[world].explored(bug)

    assert what in [loss.what for loss in found.losses]


def test_a_worker_whose_answer_is_on_its_way_may_have_to_wait_for_its_renewal_to_find_a_job_set_aside() -> None:
    world = World((1, -1), Budget(odd=2), wire=True)

    found = world.explored()

    assert [loss.what for loss in found.losses] == [LATE]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("world", LARGE)
def test_whoever_has_room_is_woken_in_every_order_of_many_events(world: str) -> None:
    found = LARGE[world].explored()

    assert found.states > 20_000
    assert found.losses == []
