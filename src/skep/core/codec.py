"""Values of Python into JSON and back. Only JSON crosses the wire: what is none is refused, with its place."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import msgspec

from skep.core.limits import MAX_PAYLOAD
from skep.errors import InvalidData, InvalidOption, PayloadTooLarge, WrongData

WRITABLE = (
    "JSON is made of None, bool, int, float, str, list, dict, dataclasses, Structs, pydantic models, enums, dates,"
    " UUID, Decimal, Path, bytes and numpy scalars"
)
CALLED_NULL = b"null"


def _is_numpy_scalar(kind: type) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)


def _plain(value: Any) -> Any:
    """What msgspec does not know, as something that it does."""
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    kind: type = type(value)
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json")
    if _is_numpy_scalar(kind):
        return value.item()
    raise NotImplementedError(f"{kind.__qualname__} cannot be written as JSON: {WRITABLE}")


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=_plain).encode


def encode(value: Any, what: str = "data", limit: int = MAX_PAYLOAD) -> bytes:
    """JSON of any supported value. `InvalidData` names the place of what cannot be written, as `data.a[1]`."""
    try:
        text = _encode(value)
    except Exception as error:  # hooks of users' classes may raise anything: it is told, with its place
        raise _blame(value, what) or InvalidData(what, str(error)) from error
    # Floats that are no numbers are written as null.
    if CALLED_NULL in text:
        found = _blame(value, what)
        if found:
            raise found
    if len(text) > limit:
        raise PayloadTooLarge(len(text), limit, what)
    return text


def encode_many(values: Sequence[Any], first: int, limit: int = MAX_PAYLOAD) -> list[bytes]:
    """The same of many. What is wrong with one is told with its index; that of the first is `first`."""
    try:
        texts = list(map(_encode, values))
    except Exception:  # noqa: BLE001 - one after another they tell which it was
        return [encode(value, f"items[{place}]", limit) for place, value in enumerate(values, first)]
    for place, text in enumerate(texts):
        if CALLED_NULL in text or len(text) > limit:
            encode(values[place], f"items[{first + place}]", limit)
    return texts


def _blame(value: Any, path: str) -> InvalidData | None:
    try:
        return _search(value, path, set())
    except RecursionError:
        return InvalidData(path, "nested too deeply for JSON")


def _search(value: Any, path: str, above: set[int]) -> InvalidData | None:
    """The first thing in a value that is not JSON."""
    if isinstance(value, float):
        return None if math.isfinite(value) else InvalidData(path, f"{float(value)} is not a number of JSON")
    if id(value) in above:
        return InvalidData(path, "contains itself")
    children = _children(value)
    if children is None:
        return _trial(value, path)
    above.add(id(value))
    for step, key, child in children:
        # A key is judged by itself, as JSON would have it.
        found = (key is not None and _trial({key: None}, path + step)) or _search(child, path + step, above)
        if found:
            return found
    above.remove(id(value))
    return None


def _trial(value: Any, path: str) -> InvalidData | None:
    try:
        _encode(value)
    except Exception as error:  # noqa: BLE001 - as in `encode`
        return InvalidData(path, str(error))
    return None


def _children(value: Any) -> Iterator[tuple[str, Any, Any]] | None:
    """What lies in a value: the step of its path, its key and itself. None: it is one that is judged as a whole."""
    if isinstance(value, Mapping):
        return ((f".{key}" if isinstance(key, str) else f"[{key!r}]", key, child) for key, child in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ((f"[{place}]", None, child) for place, child in enumerate(value))
    if isinstance(value, msgspec.Struct):
        return ((f".{name}", None, getattr(value, name)) for name in value.__struct_fields__)
    if hasattr(type(value), "model_dump"):
        return _children(value.model_dump())
    if is_dataclass(value) and not isinstance(value, type):
        return ((f".{field.name}", None, getattr(value, field.name, None)) for field in fields(value))
    return None


_decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode


def decode(text: bytes) -> Any:
    """The value of a JSON text that the server holds."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongData(f"{text[:80]!r} is not JSON: {error}") from error


def _made(kind: Any, value: Any) -> Any:
    """A value of a type that msgspec does not know, of the JSON that stands for it."""
    if hasattr(kind, "__pydantic_validator__"):
        return kind.model_validate(value)
    if isinstance(kind, type):
        if issubclass(kind, PurePath) or _is_numpy_scalar(kind):
            return kind(value)
        if issubclass(kind, MappingProxyType):
            return MappingProxyType(dict(value))
        if isinstance(value, kind):
            return value
    raise ValueError(f"{getattr(kind, '__qualname__', kind)} cannot be made of JSON")


def reader(annotation: Any) -> Callable[[bytes], Any]:
    """Reads JSON as a value of this type; what does not fit is a `ValueError` that says where."""
    try:
        return msgspec.json.Decoder(annotation, dec_hook=_made).decode
    except TypeError as error:
        # Unions of models are beyond msgspec; who has models has pydantic.
        pydantic = sys.modules.get("pydantic")
        if pydantic is None:
            raise _unreadable(annotation, error) from error
        try:
            validate: Callable[[bytes], Any] = pydantic.TypeAdapter(annotation).validate_json
        except pydantic.PydanticSchemaGenerationError:
            raise _unreadable(annotation, error) from error
        return validate


def _unreadable(annotation: Any, error: TypeError) -> InvalidOption:
    return InvalidOption("annotation", annotation, f"a type that JSON can be read as ({error})")
