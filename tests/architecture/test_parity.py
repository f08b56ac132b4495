"""The plain and the asynchronous API are one: the same names, parameters, defaults, types and first lines."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

PAIRS = [("skep.queue:Queue", "skep.aqueue:AsyncQueue"), ("skep.job:Job", "skep.ajob:AsyncJob")]
# A queue leads to its asynchronous twin; that has no way back.
ONLY_PLAIN = {"aio"}
ASYNC_WORDS = re.compile(r"\bAsync(?=(Queue|Job|Task|Iterator|Iterable|Generator|Page|Listener|Batch)\b)")


@dataclass(frozen=True)
class Member:
    """What a caller sees of a method, a property or an attribute."""

    kind: str
    parameters: tuple[tuple[str, str, Any, str], ...]
    result: str
    first_line: str


def in_plain_words(annotation: Any) -> str:
    """A type as the plain API would name it."""
    return ASYNC_WORDS.sub("", annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def described(cls: type, name: str) -> Member:
    found = inspect.getattr_static(cls, name)
    first_line = (inspect.getdoc(found) or "").partition("\n")[0]
    if isinstance(found, property):
        assert found.fget, f"{cls.__name__}.{name} cannot be read"
        return Member("property", (), in_plain_words(inspect.signature(found.fget).return_annotation), first_line)
    function = getattr(found, "__func__", found)
    if not inspect.isfunction(function):
        return Member("attribute", (), "", "")
    kind = "method" if function is found else type(found).__name__
    signature = inspect.signature(function)
    parameters = tuple(
        (one.name, one.kind.description, repr(one.default), in_plain_words(one.annotation))
        for one in signature.parameters.values()
    )
    return Member(kind, parameters, in_plain_words(signature.return_annotation), first_line)


def public(cls: type) -> dict[str, Member]:
    return {name: described(cls, name) for name in dir(cls) if not name.startswith("_")}


def load(place: str) -> type:
    module, _, name = place.partition(":")
    if find_spec(module) is None:
        pytest.skip(f"there is no {module} yet")
    found: type = getattr(importlib.import_module(module), name)
    return found


@pytest.fixture(params=PAIRS, ids=["Queue", "Job"])
def pair(request: pytest.FixtureRequest) -> tuple[dict[str, Member], dict[str, Member]]:
    plain, asynchronous = request.param
    return public(load(plain)), public(load(asynchronous))


def test_both_apis_have_the_same_public_names(pair: tuple[dict[str, Member], dict[str, Member]]) -> None:
    plain, asynchronous = pair

    assert plain.keys() - ONLY_PLAIN == asynchronous.keys()


def test_both_apis_take_and_give_the_same_and_say_the_same(
    pair: tuple[dict[str, Member], dict[str, Member]],
) -> None:
    plain, asynchronous = pair

    differing = {
        name: (plain[name], asynchronous[name])
        for name in plain.keys() & asynchronous.keys()
        if plain[name] != asynchronous[name]
    }

    assert not differing
