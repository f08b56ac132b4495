"""The names that `import skep` gives, listed in public_names.txt, so that none comes or goes unnoticed."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.tree import SRC

LISTED = Path(__file__).with_name("public_names.txt")


@pytest.fixture
def skep() -> ModuleType:
    if not (SRC / "skep" / "__init__.py").exists():
        pytest.skip("skep has no __init__.py yet")
    return importlib.import_module("skep")


def test_the_public_names_are_those_listed_and_no_more_than_forty_five(skep: ModuleType) -> None:
    names: list[str] = list(skep.__all__)

    assert sorted(names) == LISTED.read_text(encoding="utf-8").split()
    assert len(names) == len(set(names)) <= 45  # 19 are errors that callers tell apart


def test_every_public_name_exists_and_says_what_it_is_for(skep: ModuleType) -> None:
    things = {name: getattr(skep, name) for name in skep.__all__}

    silent = [
        name
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and not inspect.getdoc(thing)
    ]

    assert not silent


def test_every_public_method_of_a_public_class_says_what_it_does(skep: ModuleType) -> None:
    classes = [thing for name in skep.__all__ if inspect.isclass(thing := getattr(skep, name))]

    silent = [
        f"{thing.__name__}.{name}"
        for thing in classes
        for name, member in vars(thing).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and not inspect.getdoc(member)
    ]

    assert not silent
