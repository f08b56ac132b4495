from __future__ import annotations

import multiprocessing
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from skep.core import ids
from skep.core.ids import ALPHABET, PER_MS, Ids


def test_an_id_is_sixteen_letters_and_digits() -> None:
    made = [ids.new_id(), *ids.new_ids(3)]

    assert all(re.fullmatch(f"[{ALPHABET}]{{16}}", id) for id in made)


def test_ids_sort_in_the_order_of_their_making_beyond_a_millisecond() -> None:
    made = ids.new_ids(3 * PER_MS) + [ids.new_id() for _ in range(100)]

    assert made == sorted(set(made))


def test_ids_go_on_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Ids()
    first = maker.one()

    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    later = maker.many(2 * PER_MS)

    assert [first, *later] == sorted({first, *later})


def test_threads_never_make_the_same_id() -> None:
    def some(count: int) -> list[str]:
        return [*ids.new_ids(count), ids.new_id()]

    with ThreadPoolExecutor(8) as pool:
        made = [id for part in pool.map(some, [700] * 40) for id in part]

    assert len(made) == len(set(made))


def _make(pipe: object) -> None:
    pipe.send((os.getpid(), ids.new_ids(100)))  # type: ignore[attr-defined]


def test_a_forked_child_makes_ids_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    child = context.Process(target=_make, args=(there,))
    child.start()
    pid, theirs = here.recv()
    child.join()

    assert pid != os.getpid()
    assert {id[-7:] for id in theirs}.isdisjoint({ids.new_id()[-7:]})
