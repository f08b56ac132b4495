from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from skep.core.parameters import Parameters, result_reader
from skep.errors import InvalidData, InvalidOption, WrongData


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Model(pydantic.BaseModel):
    a: int


def greet(user_id: int, lang: str = "en", *, loud: bool = False) -> str:
    return f"{user_id}{lang}{loud}"


def draw(at: Point, when: dt.datetime, models: list[Model], extra: Any = None) -> Any:
    return at, when, models, extra


def bare(a: Any, b: Any = 1) -> Any: ...


# As it is found in the wild: nothing is said of types.
bare.__annotations__.clear()


def open_ended(a: int, **more: float) -> None: ...


def of(function: Callable[..., Any], **aliases: str) -> Parameters:
    return Parameters("t", function, aliases)


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((1,), {}, {"user_id": 1}),
        ((1, "fr"), {}, {"user_id": 1, "lang": "fr"}),
        ((), {"user_id": 1, "loud": True}, {"user_id": 1, "loud": True}),
    ],
)
def test_arguments_are_bound_to_names(args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any]) -> None:
    assert of(greet).bind(args, kwargs) == bound


@pytest.mark.parametrize(
    ("args", "kwargs", "what"),
    [
        ((), {}, "user_id"),
        ((1, "fr", True), {}, "too many positional"),
        ((1,), {"user_id": 2}, "multiple values"),
        ((1,), {"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_call_is_the_type_error_of_the_function(
    args: tuple[Any, ...], kwargs: dict[str, Any], what: str
) -> None:
    with pytest.raises(TypeError, match=what):
        of(greet).bind(args, kwargs)


def nameless(*args: Any) -> None: ...


def by_place(a: int, /) -> None: ...


@pytest.mark.parametrize("function", [nameless, by_place])
def test_parameters_without_a_name_of_their_own_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(InvalidOption, match="name for each argument"):
        of(function)


def test_annotations_convert_what_arrives() -> None:
    data = b'{"at":{"x":1},"when":"2030-01-02T03:04:05Z","models":[{"a":1}],"extra":{"k":[1]}}'

    read = of(draw).read(data)

    assert read == {
        "at": Point(1),
        "when": dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "models": [Model(a=1)],
        "extra": {"k": [1]},
    }


@pytest.mark.parametrize(
    ("function", "data", "named"),
    [
        (greet, b'{"user_id":"x"}', "user_id"),
        (greet, b'{"user_id":1,"lang":5}', "lang"),
        (greet, b'{"lang":"fr"}', "user_id"),
        (greet, b"null", "user_id"),
        (greet, b'{"user_id":1,"colour":2}', "colour"),
        (greet, b"[1]", "data"),
        (greet, b"{", "data"),
        (draw, b'{"at":{"y":1},"when":"2030-01-02","models":[]}', "at"),
        (draw, b'{"at":{"x":1},"when":"2030-01-02T03:04:05Z","models":[{"a":"x"}]}', "models"),
        (open_ended, b'{"a":1,"b":"x"}', "b"),
    ],
)
def test_what_does_not_fit_names_its_parameter(function: Callable[..., Any], data: bytes, named: str) -> None:
    with pytest.raises(InvalidData, match=f"^{named}:") as caught:
        of(function).read(data)

    assert caught.value.path == named


def test_a_default_is_left_to_the_function_and_is_the_very_object_it_has() -> None:
    def collect(item: int, into: list[int] = []) -> Any: ...  # noqa: B006 - such functions exist

    assert of(collect).read(b'{"item":1}') == {"item": 1}
    assert of(collect).read(b'{"item":1,"into":[2]}') == {"item": 1, "into": [2]}


def test_a_name_that_is_called_otherwise_now_is_read_beside_those_that_are_not() -> None:
    parameters = of(greet, language="lang")

    assert parameters.read(b'{"user_id":1,"language":"fr"}') == {"user_id": 1, "lang": "fr"}
    assert parameters.read(b'{"user_id":1,"lang":"fr"}') == {"user_id": 1, "lang": "fr"}


def test_a_new_parameter_with_a_default_and_one_without_annotation_are_fine() -> None:
    assert of(greet).read(b'{"user_id":1}') == {"user_id": 1}
    assert of(bare).read(b'{"a":[1]}') == {"a": [1]}
    assert of(open_ended).read(b'{"a":1,"b":2,"c":2.5}') == {"a": 1, "b": 2.0, "c": 2.5}


def test_a_renamed_parameter_takes_its_old_name() -> None:
    renamed = of(greet, user="user_id")

    assert renamed.read(b'{"user":1}') == {"user_id": 1}
    assert renamed.read(b'{"user_id":1}') == {"user_id": 1}


@pytest.mark.parametrize("aliases", [{"old": "nobody"}, {"lang": "user_id"}])
def test_aliases_that_lead_nowhere_are_refused(aliases: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="aliases"):
        of(greet, **aliases)


def test_constraints_in_annotations_hold() -> None:
    def limited(n: Annotated[int, msgspec.Meta(le=5)]) -> None: ...

    limited.__annotations__["n"] = Annotated[int, msgspec.Meta(le=5)]

    with pytest.raises(InvalidData, match="n:"):
        of(limited).read(b'{"n":6}')


def test_a_name_that_nobody_knows_is_told_when_it_matters() -> None:
    def lost(a: int) -> None: ...

    lost.__annotations__["a"] = "Nowhere"

    with pytest.raises(InvalidOption, match="Nowhere"):
        of(lost).read(b'{"a":1}')


def test_defaults_are_part_of_what_a_call_means() -> None:
    parameters = of(greet)

    assert parameters.with_defaults(parameters.bind((1,), {})) == {"user_id": 1, "lang": "en", "loud": False}


def test_methods_partials_and_objects_can_be_called_as_well() -> None:
    class Greeter:
        def __call__(self, name: int) -> Point:
            return Point(name)

    assert of(Greeter()).read(b'{"name":1}') == {"name": 1}
    assert of(partial(greet, loud=True)).read(b'{"user_id":1}') == {"user_id": 1}


def test_a_result_is_read_as_its_function_promises() -> None:
    def made() -> Point: ...  # type: ignore[empty-body] # pyright: ignore[reportReturnType]

    assert result_reader(made)(b'{"x":3}') == Point(3)
    assert result_reader(bare)(b'{"x":3}') == {"x": 3}
    assert result_reader(draw)(b"null") is None
    with pytest.raises(WrongData, match="promises"):
        result_reader(made)(b'{"y":3}')
