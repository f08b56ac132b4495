"""A Lua script opens with a contract that a machine can read, and this is the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from skep.core.states import TRANSITIONS
from tests.architecture.tree import SCRIPTS

ENTRIES = sorted(SCRIPTS.glob("*.lua"))
PIECES = sorted((SCRIPTS / "lib").glob("*.lua"))

FIRST_LINE = re.compile(r"-- (?P<name>\w+): (?P<told>.+)")
ARROW = re.compile(r"(?P<before>[a-z| ]*)-> ?(?P<after>[a-z| ]*)")


def header(path: Path) -> list[str]:
    """The comment that the file opens with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[: next((n for n, line in enumerate(lines) if not line.startswith("--")), len(lines))]


def uses(path: Path) -> list[str]:
    return [name for line in header(path) if line.startswith(("--@use ", "--@later ")) for name in line.split()[1:]]


def words(listed: str) -> frozenset[str]:
    return frozenset(word.strip() for word in listed.split("|"))


def names(paths: Iterable[Path]) -> list[str]:
    return [path.stem for path in paths]


def test_there_are_scripts_and_shared_pieces_to_look_at() -> None:
    assert ENTRIES
    assert PIECES


@pytest.mark.parametrize("path", [*ENTRIES, *PIECES], ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_a_script_opens_with_its_own_name_and_what_it_does(path: Path) -> None:
    first = FIRST_LINE.fullmatch(header(path)[0])

    assert first
    assert first["name"] == path.stem


@pytest.mark.parametrize("path", ENTRIES, ids=names(ENTRIES))
def test_a_script_says_what_it_is_given_and_what_it_gives(path: Path) -> None:
    lines = header(path)

    assert [line for line in lines if re.match(r"-- KEYS  \S", line)]
    assert [line for line in lines if re.match(r"-- ARGV  now, call(,|$)", line)]
    assert [line for line in lines if re.match(r"-- gives \S", line)]


@pytest.mark.parametrize("path", ENTRIES, ids=names(ENTRIES))
def test_the_arrow_of_a_transition_is_the_one_in_the_table_of_states(path: Path) -> None:
    first = FIRST_LINE.fullmatch(header(path)[0])
    assert first
    arrow = ARROW.fullmatch(first["told"])
    told = (words(arrow["before"]), words(arrow["after"])) if arrow else None

    assert told == TRANSITIONS.get(path.stem)


def test_every_transition_of_the_table_has_its_script() -> None:
    assert TRANSITIONS.keys() <= set(names(ENTRIES))


@pytest.mark.parametrize("path", [*ENTRIES, *PIECES], ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_a_script_uses_only_shared_pieces_that_exist(path: Path) -> None:
    assert set(uses(path)) <= set(names(PIECES))


def test_every_shared_piece_is_used_by_some_script() -> None:
    found = {name for path in ENTRIES for name in uses(path)}
    while (more := {name for path in PIECES if path.stem in found for name in uses(path)} - found) != set():
        found |= more

    assert found == set(names(PIECES))
