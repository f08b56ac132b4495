from __future__ import annotations

import threading

import pytest

from skep.core.job import decode_error, encode_error
from skep.worker.failure import describe


class Odd(Exception):
    """Cannot be shown, and has attributes of all kinds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.code = 7
        self.where = {"a": [1]}
        self._hidden = "secret"

    def __str__(self) -> str:
        raise RuntimeError("cannot be shown")


def raised(error: BaseException) -> BaseException:
    """The same, with a traceback."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_an_error_is_told_by_its_plain_type_its_text_and_its_traceback() -> None:
    told = describe(raised(ValueError("no disk")))

    assert (told.type, told.message, told.kind) == ("ValueError", "no disk", "error")
    assert "raise error" in told.traceback
    assert told.traceback.endswith("ValueError: no disk\n")


def test_an_error_that_cannot_be_shown_is_told_all_the_same() -> None:
    told = describe(raised(Odd()))

    assert told.type == "Odd"
    assert "cannot be shown" in told.message
    assert told.details == {"code": 7, "where": {"a": [1]}}


def test_details_are_small_and_never_hidden_ones() -> None:
    error = ValueError()
    error.__dict__.update(large="x" * 10_000, small=1)

    assert describe(error).details == {"small": 1} or describe(error).details == {}


def test_long_texts_keep_their_beginning_and_their_end() -> None:
    told = describe(raised(ValueError("a" * 50_000 + "z" * 50_000)))

    assert len(told.message.encode()) <= 8 << 10
    assert told.message.startswith("aaa")
    assert told.message.endswith("zzz")
    assert len(told.traceback.encode()) <= 32 << 10


def test_text_that_is_no_unicode_is_told_as_it_can_be() -> None:
    told = describe(raised(ValueError("half a pair: \ud800")))

    assert decode_error(encode_error(told)).message == "half a pair: \\ud800"


def test_the_cause_of_an_error_is_in_its_traceback() -> None:
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")

    assert "KeyError: 'inner'" in describe(raised(error)).traceback


def test_an_error_without_end_of_calls_is_told_within_its_limit() -> None:
    def deeper() -> None:
        deeper()

    with pytest.raises(RecursionError) as caught:
        deeper()

    assert len(describe(caught.value).traceback.encode()) <= 32 << 10
