"""How arguments travel: bound to a signature by the caller, an object of JSON by name, read as annotations say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from skep.core.codec import decode, reader
from skep.core.unset import UNSET
from skep.errors import InvalidData, InvalidOption, WrongData

Parameter = inspect.Parameter
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_take_apart = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Parameters:
    """The parameters of one function, for those who call it from afar and for those who run it."""

    def __init__(self, task: str, function: Callable[..., Any], aliases: Mapping[str, str]) -> None:
        self.task = task
        self._function = function
        self.signature = inspect.signature(function)
        given = self.signature.parameters.values()
        for each in given:
            if each.kind not in (*BY_NAME, Parameter.VAR_KEYWORD):
                wanted = f"parameters that have a name for each argument, which {str(each)!r} has not"
                raise InvalidOption("function", task, wanted)
        self.names = tuple(each.name for each in given if each.kind in BY_NAME)
        self.required = frozenset(
            each.name for each in given if each.kind in BY_NAME and each.default is Parameter.empty
        )
        self.takes_more = next((each.name for each in given if each.kind is Parameter.VAR_KEYWORD), None)
        self._by_place = tuple(each.name for each in given if each.kind is Parameter.POSITIONAL_OR_KEYWORD)
        self._known = frozenset(self.names)
        self.aliases = dict(aliases)
        for old, new in self.aliases.items():
            if new not in self._known or old in self._known:
                raise InvalidOption("aliases", {old: new}, "a former name for the name of a parameter, {'old': 'new'}")

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name; a wrong call is a `TypeError`, as if the function itself had been called."""
        bound = dict(zip(self._by_place, args, strict=False))
        fits: object = len(args) <= len(self._by_place) and not bound.keys() & kwargs.keys()
        bound.update(kwargs)
        fits = fits and self.required <= bound.keys() and (self.takes_more or bound.keys() <= self._known)
        if not fits:
            self.signature.bind(*args, **kwargs)  # says what is wrong
        return bound

    def with_defaults(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments that the function would run with."""
        given = self.signature.parameters
        return {name: given[name].default for name in self.names if name not in self.required} | dict(bound)

    @cached_property
    def _readers(self) -> dict[str, Callable[[bytes], Any]]:
        return dict(self._make_readers())

    def _make_readers(self) -> Iterator[tuple[str, Callable[[bytes], Any]]]:
        hints = types_of(self._function)
        for name in (*self.names, *filter(None, (self.takes_more,))):
            try:
                yield name, reader(hints.get(name, Any))
            except InvalidOption as error:
                raise InvalidOption(f"annotation of {self.task}({name})", error.value, error.wanted) from error

    @cached_property
    def read(self) -> Callable[[bytes], dict[str, Any]]:
        """Reads what the function is to be called with. `InvalidData` names the parameter that does not fit."""
        take = self._reader_of_all()
        if take is None:
            return self._read_each
        asdict, read_each, partly = msgspec.structs.asdict, self._read_each, len(self.required) < len(self.names)

        def read(data: bytes) -> dict[str, Any]:
            try:
                given = asdict(take(data))
            except Exception:  # noqa: BLE001 - one by one they tell what is wrong, or read what is called otherwise
                return read_each(data)
            return {name: value for name, value in given.items() if value is not UNSET} if partly else given

        return read

    def _reader_of_all(self) -> Callable[[bytes], msgspec.Struct] | None:
        """All at once, for a tenth of the time that one by one takes; None where msgspec knows not all of the types."""
        if self.takes_more:
            return None
        hints = types_of(self._function)
        fields = [
            (name, hints.get(name, Any)) if name in self.required else (name, hints.get(name, Any), UNSET)
            for name in self.names
        ]
        try:
            shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False)
            return reader(shape)
        except Exception:  # noqa: BLE001 - names or types that cannot be fields; one by one they may well be read
            return None

    def _read_each(self, data: bytes) -> dict[str, Any]:
        read, readers = dict[str, Any](), self._readers
        more = readers.get(self.takes_more) if self.takes_more else None
        for said, raw in self._taken_apart(data).items():
            name = self.aliases.get(said, said)
            one = readers.get(name) if name in self._known else more
            if one is None:
                raise InvalidData(said, f"task {self.task!r} has no such parameter; a new name takes aliases={{...}}")
            try:
                read[name] = one(raw)
            except (ValueError, TypeError) as error:
                raise InvalidData(name, str(error)) from None
        for name in self.required - read.keys():
            raise InvalidData(name, f"task {self.task!r} needs it, and the job's data has it not")
        return read

    def _taken_apart(self, data: bytes) -> dict[str, Any]:
        if data == b"null":
            return {}
        try:
            return _take_apart(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidData("data", f"task {self.task!r} takes an object of arguments by name ({error})") from None


def types_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as types. One that cannot be told is refused: it could not be kept."""
    plain = function if inspect.isroutine(function) else getattr(function, "func", function)
    if not inspect.isroutine(plain):
        plain = type(plain).__call__
    try:
        return get_type_hints(plain, include_extras=True)
    except NameError as error:
        where = f"{plain.__module__}.{plain.__qualname__}"
        raise InvalidOption(
            "annotations", where, f"names that are known in its module when it runs ({error})"
        ) from error


def result_reader(function: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Reads a result as the function's return annotation says, where it says something."""
    wanted = types_of(function).get("return", Any)
    if wanted is Any or wanted is type(None):
        return decode
    read = reader(wanted)

    def result(text: bytes) -> Any:
        try:
            return read(text)
        except (ValueError, TypeError) as error:
            raise WrongData(f"the result {text[:80]!r} is not what its task promises: {error}") from error

    return result
