from __future__ import annotations

import pytest

from skep.core.limits import check_label, check_new_id, check_queue_name, unique_id
from skep.errors import InvalidName, ReservedId


@pytest.mark.parametrize("name", ["mail", "x" * 200, "é☃ a/b:c", "🐝" * 200])
def test_names_of_queues_may_be_any_text_of_200_characters(name: str) -> None:
    assert check_queue_name(name) == name


@pytest.mark.parametrize("name", ["", "x" * 201, "a{b", "a}b", "a\nb", "a\x00", "\x7f", "\ud800", 5, None])
def test_names_of_queues_that_cannot_be_are_refused(name: object) -> None:
    with pytest.raises(InvalidName, match="1 to 200 characters"):
        check_queue_name(name)


@pytest.mark.parametrize("id", ["x", "é" * 100, "a b\n{c}\x00", "🐝" * 50])
def test_ids_may_be_any_text_of_200_bytes(id: str) -> None:
    assert check_new_id(id) == id


@pytest.mark.parametrize("label", ["", "x" * 201, "é" * 101, "\udcff", b"x", [], 5])
def test_labels_that_cannot_be_are_refused(label: object) -> None:
    with pytest.raises(InvalidName, match="200 bytes"):
        check_label("name", label)


@pytest.mark.parametrize("id", ["failure-1", "failure-x", "cron:nightly"])
def test_ids_of_the_queues_own_jobs_are_reserved(id: str) -> None:
    with pytest.raises(ReservedId, match=id):
        check_new_id(id)


def test_equal_arguments_make_equal_ids_whatever_their_order() -> None:
    first = unique_id("send", {"a": 1, "b": [2]}, None)
    second = unique_id("send", {"b": [2], "a": 1}, None)

    assert first == second


def test_an_id_of_some_arguments_does_not_depend_on_the_others() -> None:
    one, other = {"user": 1, "text": "a"}, {"user": 1, "text": "b"}

    assert unique_id("send", one, ("user",)) == unique_id("send", other, ("user",))
    assert unique_id("send", one, None) != unique_id("send", other, None)
    assert unique_id("send", one, None) != unique_id("post", one, None)


def test_an_id_of_a_long_task_name_is_still_an_id() -> None:
    id = unique_id("é" * 100, {"a": 1}, None)

    assert check_new_id(id) == id
