from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections import OrderedDict
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest

from skep.core.codec import decode, encode, encode_many, reader
from skep.errors import InvalidData, InvalidOption, PayloadTooLarge, WrongData


@dataclasses.dataclass
class Point:
    x: Any
    y: float = 0.5


class Box(msgspec.Struct):
    inner: Any


class Model(pydantic.BaseModel):
    a: int
    b: float = 1.5


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Half(float):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        ({"x": [1, 2.5, True, "é☃"]}, '{"x":[1,2.5,true,"é☃"]}'.encode()),
        (2**70, b"1180591620717411303424"),
        (Point(1), b'{"x":1,"y":0.5}'),
        (Box(Point(None)), b'{"inner":{"x":null,"y":0.5}}'),
        (Model(a=1), b'{"a":1,"b":1.5}'),
        ([Model(a=2)], b'[{"a":2,"b":1.5}]'),
        (Colour.RED, b'"red"'),
        (dt.datetime(2030, 1, 2, tzinfo=dt.UTC), b'"2030-01-02T00:00:00Z"'),
        (uuid.UUID(int=0), b'"00000000-0000-0000-0000-000000000000"'),
        (decimal.Decimal("1.50"), b'"1.50"'),
        (PurePosixPath("/a/b"), b'"/a/b"'),
        (b"abc", b'"YWJj"'),
        (np.float64(1.5), b"1.5"),
        (np.int64(3), b"3"),
        (np.bool_(True), b"true"),
        (Text("t"), b'"t"'),
        (Half(0.5), b"0.5"),
        (OrderedDict(a=1), b'{"a":1}'),
        (MappingProxyType({"a": None}), b'{"a":null}'),
        ({1, 2}, b"[1,2]"),
        ({1: "a"}, b'{"1":"a"}'),
    ],
)
def test_all_that_can_be_said_in_json_is_written(value: Any, text: bytes) -> None:
    assert encode(value) == text


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (float("nan"), "data"),
        ({"a": [1, float("inf")]}, r"data.a\[1\]"),
        ([None, {"b": Half("-inf")}], r"data\[1\].b"),
        (Point(np.float64("nan")), "data.x"),
        (Box([Model(a=1, b=float("nan"))]), r"data.inner\[0\].b"),
        ({"a": [1, object()]}, r"data.a\[1\]"),
        ({"a": {(1, 2): 3}}, r"data.a\[\(1, 2\)\]"),
        ({"a": "\ud800"}, "data.a"),
        ({"\ud800": 1}, "data."),
        (endless(), r"data.a\[1\]"),
        (deep(100_000), "data"),
        (1j, "data"),
        ({"f": lambda: 1}, "data.f"),
        ({"a": np.array([1])}, "data.a"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(InvalidData, match=rf"^{place}"):
        encode(value)


def test_what_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(PayloadTooLarge, match="1,002 bytes") as caught:
        encode("x" * 1000, limit=1001)

    assert (caught.value.size, caught.value.limit) == (1002, 1001)


@pytest.mark.parametrize("bad", [float("nan"), object(), "x" * 2000])
def test_of_many_the_wrong_one_is_told_by_its_index(bad: Any) -> None:
    with pytest.raises((InvalidData, PayloadTooLarge), match=r"items\[12\]"):
        encode_many([1, None, {"a": bad}], 10, limit=1000)


def test_many_are_written_as_each_of_them() -> None:
    values = [1, None, {"a": None}, Point(2)]

    assert encode_many(values, 0) == [encode(value) for value in values]


def test_what_the_server_holds_and_is_no_json_is_told() -> None:
    with pytest.raises(WrongData, match="not JSON"):
        decode(b"{")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 3),
        (Point, Point(1, 2.0)),
        (Box, Box([1])),
        (Model, Model(a=3)),
        (list[Model], [Model(a=3)]),
        (Model | None, None),
        (Model | list[Model], [Model(a=3)]),
        (dict[str, uuid.UUID], {"a": uuid.UUID(int=5)}),
        (Path, Path("/x")),
        (bytes, b"\x00\xff"),
        (Colour, Colour.RED),
        (decimal.Decimal, decimal.Decimal("1.50")),
        (dt.datetime, dt.datetime(2030, 1, 2, tzinfo=dt.UTC)),
        (np.float64, np.float64(1.5)),
        (Any, {"a": [1]}),
    ],
)
def test_what_was_written_is_read_as_its_type_says(annotation: Any, value: Any) -> None:
    read = reader(annotation)(encode(value))

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("annotation", [int, Model, Path, complex, range])
def test_what_does_not_fit_its_type_is_a_value_error(annotation: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        reader(annotation)(b'[{"a":"x"}]')


def test_a_type_that_json_cannot_be_read_as_is_refused() -> None:
    with pytest.raises(InvalidOption, match="annotation"):
        reader(Point | Box)
