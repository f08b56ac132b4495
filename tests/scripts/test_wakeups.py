"""No wake-up is lost: rounds that end in silence, so that no later add hides a loss, and nobody renews."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count

import msgspec
import pytest

from skep import lifecycle, scripts
from skep.testing import Server
from tests.support.engine import Engine, claim_of, draft
from tests.support.served import until
from tests.support.sleepers import HELD, QUICK, Sleepers, Swap, Terms

SILENCE = 5.0
"""Seconds after which a job that nobody has taken is lost. Who sleeps in vain sleeps on, so more would not hurt."""

KNOWN, ODD = "", "odd"
ALL = (KNOWN, ODD)

BUGS = {
    "full drops the marker": (
        "claim",
        Swap("place.any() or waker.is_due(head, at)) then", "place.any() or mine and head > 0) then"),
    ),
    "skips taken for drained": (
        "lib/take",
        Swap("if #ids >= n then return false end\n  end\n  return true", "end\n  return false"),
    ),
    "head 0 keeps the duty": ("claim", Swap("if mine then server('HDEL'", "if mine and not more then server('HDEL'")),
    "a delayed job wakes nobody": (
        "lib/waker",
        Swap("tonumber(known) > due then", "true then return end\n  if false then"),
    ),
    "resume tells nobody": ("pause", Swap("  waker.ask()\n", "")),
    "a set-aside tells nobody": ("lib/place", Swap("then waker.ask() end", "then end")),
}
"""Each with the file that has the text. The first three are those that an earlier protocol really had."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Of its own, so that all who wait on it are ours."""
    with Server() as server:
        yield server


class Rounds:
    """Adds jobs and waits until all of them run or are over; what is held then ends, and the next round comes."""

    def __init__(self, server: Server, queue: str, sleepers: Sleepers, dice: random.Random, bug: Swap | None) -> None:
        self.engine = Engine(server.path, queue, mutate=bug)
        self.engine.own_clock = True
        self.sleepers = sleepers
        self.dice = dice
        self.ids = count(1)
        self.held = list[str]()

    def add(self, jobs: int = 1, *, delay: int | None = None, held: bool = False, task: str = KNOWN) -> list[str]:
        ids = [f"j{next(self.ids)}" for _ in range(jobs)]
        data = msgspec.json.encode(HELD if held else QUICK)
        like = draft("", generated=True, delay=delay, task=task)
        self.engine.send(lifecycle.add(self.engine.keys, like, [(id, data) for id in ids]))
        if held:
            self.held += ids
        return ids

    def some(self, most_held: int) -> None:
        """Delayed ones, ready ones, a burst of which one job is left, a pause: in any order, close together."""
        dice = self.dice
        acts = ["delayed"] * dice.randrange(4) + ["ready"] * dice.randrange(1, 8)
        acts += dice.choices(["burst", "pause", "late"], [3, 1, 2], k=dice.randrange(3))
        dice.shuffle(acts)
        for act in acts:
            held = len(self.held) < most_held and dice.random() < 0.6
            if act == "burst":
                gone = self.add(30)[:29]
                self.engine.send(lifecycle.cancel(self.engine.keys, [(id, None) for id in gone]))
            elif act == "pause":
                self.engine.send(lifecycle.pause(self.engine.keys, wanted=True))
                self.add(held=held, delay=dice.choice((None, 1)))
                self.engine.send(lifecycle.pause(self.engine.keys, wanted=False))
            else:
                delays = {"delayed": dice.randrange(3, 12), "late": dice.randrange(12, 25), "ready": None}
                self.add(delay=delays[act], held=held)
            spin(dice.choice((0, 0, 0.0002, 0.0005, 0.001)))

    def silent(self) -> bool:
        """Whether all that was added runs or is over."""
        counts = self.engine.counts()
        waits = counts.waiting + counts.scheduled + counts.held
        return waits == 0 and counts.active == len(self.held)

    def end(self) -> str:
        """The silence of a round: what is lost, if anything is; else all that is held ends."""
        try:
            until(self.silent, SILENCE)
        except AssertionError:
            return self.look()
        self.sleepers.end(self.held)
        self.held = []
        until(self.silent)
        return ""

    def look(self) -> str:
        """Where it all stands."""
        duty = [self.engine.get("queue", name) for name in ("timer_by", "timer_at", "asking")]
        return f"{self.engine.counts()}, {len(self.held)} held, marker {self.engine.size('wake')}, duty {duty}"


def spin(seconds: float) -> None:
    """A moment between two adds, too short for a sleep."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def play(server: Server, queue: str, seconds: float, *, bug: Swap | None = None, seed: int = 7) -> tuple[int, str]:
    """Rounds for so long, or up to the first loss."""
    dice = random.Random(seed)
    caps = ((1, 1, 2), (1, 2, 1))
    terms = [Terms(server.path, queue, each, (ALL,) * 3, n, bug) for n, each in enumerate(caps)]
    with Sleepers(*terms) as sleepers:
        rounds, end = Rounds(server, queue, sleepers, dice, bug), time.monotonic() + seconds
        for number in count(1):
            rounds.some(most_held=7)
            lost = rounds.end()
            if lost or time.monotonic() > end:
                return number, lost
    raise AssertionError("unreachable")


def play_aside(server: Server, queue: str, seconds: float, *, bug: Swap | None = None) -> tuple[int, str]:
    """Rounds with jobs of a task that two of six idle workers know: those who do not know it set it aside."""
    dice = random.Random(7)
    knows = ((ALL, (KNOWN,), (KNOWN,)), ((KNOWN,), (KNOWN,), ALL))
    terms = [Terms(server.path, queue, (1, 1, 1), each, n, bug) for n, each in enumerate(knows)]
    with Sleepers(*terms) as sleepers, server.client() as client:
        rounds, end = Rounds(server, queue, sleepers, dice, bug), time.monotonic() + seconds
        for number in count(1):
            # Who is just about to listen may miss it until its renewal.
            until(lambda: client.info("clients")["blocked_clients"] == 6)
            for _ in range(dice.randrange(1, 3)):
                rounds.add(task=ODD, held=True)
            if dice.random() < 0.5:
                rounds.add(delay=dice.randrange(1, 8), held=True)
            lost = rounds.end()
            if lost or time.monotonic() > end:
                return number, lost
    raise AssertionError("unreachable")


def test_no_wake_up_is_lost_in_rounds_that_end_in_silence(server: Server) -> None:
    rounds, lost = play(server, "quick", 8)

    assert lost == ""
    assert rounds > 20


def test_idle_workers_that_know_a_task_take_what_others_set_aside_without_a_renewal(server: Server) -> None:
    rounds, lost = play_aside(server, "aside", 2)

    assert lost == ""
    assert rounds > 5


@pytest.mark.parametrize("bug", BUGS)
def test_each_deliberate_bug_of_the_protocol_is_one_place_of_the_scripts(bug: str) -> None:
    file, swap = BUGS[bug]

    assert scripts.folder().joinpath(f"{file}.lua").read_text(encoding="utf-8").count(swap.right) == 1


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", BUGS)
def test_the_rounds_find_each_bug_that_is_put_back_into_the_scripts(server: Server, bug: str) -> None:
    _, swap = BUGS[bug]
    played = play_aside if "set-aside" in bug else play

    _, lost = played(server, f"bug {bug}", 500, bug=swap)

    assert lost


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_wake_up_is_lost_in_thousands_of_rounds(server: Server, seed: int) -> None:
    _, lost = play(server, f"long {seed}", 45, seed=seed)

    assert lost == ""


@pytest.mark.long
@pytest.mark.timeout(200)
def test_no_job_set_aside_is_forgotten_in_hundreds_of_rounds(server: Server) -> None:
    _, lost = play_aside(server, "long aside", 30)

    assert lost == ""


def test_a_claim_said_again_still_tells_when_to_come_back(engine: Engine) -> None:
    engine.join()
    engine.add("x", delay=5000)

    first, again = (engine.send(claim_of(engine.keys, "w", 1, 1, [""])) for _ in range(2))

    assert first is not None
    assert again is not None
    assert first.head == again.head == engine.now + 5000


def test_a_claim_said_again_tells_no_time_for_which_another_worker_comes_by_now(engine: Engine) -> None:
    for worker in ("w", "v"):
        engine.join(worker)
    engine.add("x", delay=5000)
    engine.claim("w")
    engine.add("y", delay=1000)
    engine.claim("v")

    again = engine.send(claim_of(engine.keys, "w", 1, 1, [""]))

    assert again is not None
    assert again.head == 0


def test_a_renewal_leaves_a_marker_where_the_duty_is_for_a_later_time_than_the_next_job(engine: Engine) -> None:
    engine.join()
    engine.add("far", delay=9000)
    engine.claim()
    engine.add("near", delay=1000)
    engine.command("DEL", engine.keys.wake)  # it was taken by a worker that died

    engine.renew()

    assert engine.size("wake") == 1


def test_jobs_that_nobody_knows_are_handed_round_once_and_not_for_ever(engine: Engine) -> None:
    workers = [engine.join(f"w{n}") for n in range(4)]
    engine.add("x", task=ODD)

    claims = 0
    while engine.size("wake"):
        engine.command("DEL", engine.keys.wake)
        engine.claim(workers[claims % 4])
        claims += 1

    # Who set it aside, and five more: one for each worker, and one for who had to take his place again.
    assert claims == 6
