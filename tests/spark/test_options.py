from __future__ import annotations

from collections.abc import Callable

import pytest

from skep.errors import InvalidName, InvalidOption
from skep.spark.options import (
    EventsOptions,
    JobsOptions,
    QueueChoice,
    UnknownOption,
    WriteOptions,
    table,
)


def test_a_write_needs_a_queue_only_and_has_careful_defaults() -> None:
    options = WriteOptions.parse({"queue": "mail"})

    assert options == WriteOptions(
        queue="mail",
        url=None,
        prefix="skep",
        task=None,
        data_column=None,
        write_id=None,
        bad_rows="fail",
        staging_ttl_ms=24 * 3600 * 1000,
    )


def test_options_are_found_whatever_their_case_as_spark_hands_them_over() -> None:
    given = {
        "QUEUE": "mail",
        "datacolumn": "payload",
        "writeid": "w-1",
        "BadRows": "SKIP",
        "stagingttl": "60",
    }

    options = WriteOptions.parse(given)

    assert (options.queue, options.data_column, options.write_id) == ("mail", "payload", "w-1")
    assert (options.bad_rows, options.staging_ttl_ms) == ("skip", 60_000)


def test_events_are_read_with_a_reader_and_a_limit_per_micro_batch() -> None:
    given = {"queue": "mail", "table": "events", "reader": "lake", "rowsPerBatch": "5000", "since": "17"}

    options = EventsOptions.parse(given)

    assert (options.reader, options.rows_per_batch, options.since) == ("lake", 5000, 17)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queue": "mail"}, ("mail",)),
        ({"queue": "a,b"}, ("a,b",)),
        ({"queues": "mail, billing"}, ("mail", "billing")),
        ({"queues": '["a,b", "007"]'}, ("a,b", "007")),
        ({"queue": "mail", "queues": "mail,billing"}, ("mail", "billing")),
        ({"queue": "mail-*"}, ("mail-*",)),
    ],
)
def test_queues_are_named_alone_in_a_list_as_json_or_by_pattern(given: dict[str, str], words: tuple[str, ...]) -> None:
    options = JobsOptions.parse(given)

    assert options.queues.words == words


def test_a_choice_picks_its_names_and_what_its_patterns_match() -> None:
    choice = QueueChoice(("mail", "billing-*", "[x]*"))

    picked = [name for name in ("mail", "mail2", "billing-", "billing-\u00e9", "x", "[x]y") if choice.picks(name)]

    assert picked == ["mail", "billing-", "billing-\u00e9", "[x]y"]
    assert choice.names == ("mail",)
    assert choice.is_open


def test_columns_to_fetch_are_a_list_of_names() -> None:
    options = JobsOptions.parse({"queue": "mail", "columns": "id, status"})

    assert options.columns == ("id", "status")


def test_jobs_are_picked_by_ids_names_and_statuses() -> None:
    options = JobsOptions.parse({"queue": "mail", "status": "failed,completed", "name": '["a,b"]', "id": "x"})

    assert options.statuses == ("failed", "succeeded")
    assert (options.names, options.ids) == (("a,b",), ("x",))


@pytest.mark.parametrize(("given", "expected"), [({}, "jobs"), ({"Table": "Events"}, "events")])
def test_the_table_is_jobs_unless_events_are_asked_for(given: dict[str, str], expected: str) -> None:
    asked = table(given)

    assert asked == expected


@pytest.mark.parametrize(
    ("parse", "given", "told"),
    [
        (
            WriteOptions.parse,
            {},
            r"queue=None.*such as \.option\('queue', 'mail'\).*WITH \('queue' = 'mail'\)",
        ),
        (WriteOptions.parse, {"path": "mail"}, r"queue='mail': queue takes the name of a queue, such as"),
        (WriteOptions.parse, {"queue": "mail-*"}, "one name where rows are written"),
        (WriteOptions.parse, {"queue": "mail", "table": "events"}, "events are written by queues only"),
        (WriteOptions.parse, {"queue": "mail", "badRows": "ignore"}, "badRows takes 'fail' or 'skip'"),
        (WriteOptions.parse, {"queue": "mail", "stagingTtl": "1d"}, "a whole number of 1 or more, such as"),
        (JobsOptions.parse, {}, r"'\*' means all queues"),
        (JobsOptions.parse, {"queues": "mail,,billing"}, "names with commas between, such as 'mail,billing'"),
        (JobsOptions.parse, {"queues": '["mail"'}, "or a JSON list, such as"),
        (JobsOptions.parse, {"queue": "mail", "columns": ""}, "such as 'id,status'"),
        (JobsOptions.parse, {"queue": "mail", "status": "done"}, "some of waiting, scheduled"),
        (EventsOptions.parse, {"queue": "mail", "rowsPerBatch": "0"}, "a whole number of 1 or more"),
        (EventsOptions.parse, {"queue": "mail", "since": "-1"}, "a whole number of 0 or more"),
        (EventsOptions.parse, {"queue": "m*", "since": "5"}, "0 where several queues are read"),
        (table, {"table": "runs"}, "table takes 'jobs' or 'events'"),
    ],
)
def test_a_wrong_value_is_refused_with_an_example_of_a_right_one(
    parse: Callable[[dict[str, str]], object], given: dict[str, str], told: str
) -> None:
    with pytest.raises(InvalidOption, match=told):
        parse(given)


@pytest.mark.parametrize("name", ["{mail}", "", "m" * 201])
def test_what_cannot_be_the_name_of_a_queue_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="such as 'mail'"):
        WriteOptions.parse({"queue": name})


def test_a_misspelt_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownOption, match=r"'writeld' is unknown to format\('skep'\): did you mean writeId\?"):
        WriteOptions.parse({"queue": "mail", "writeld": "w-1"})


def test_the_value_of_an_unknown_option_is_not_shown() -> None:
    with pytest.raises(UnknownOption, match="there are url, prefix, queue") as caught:
        WriteOptions.parse({"queue": "mail", "zzz": "secret"})

    assert "secret" not in str(caught.value)


def test_what_spark_adds_for_a_stream_or_a_table_is_passed_over() -> None:
    of_a_stream = {"queue": "mail", "checkpointlocation": "file:/c", "queryname": "q"}
    of_a_table = {"queue": "mail", "option.queue": "mail", "owner": "me", "provider": "skep"}

    queues = [WriteOptions.parse(given).queue for given in (of_a_stream, of_a_table)]

    assert queues == ["mail", "mail"]


def test_an_address_with_a_password_does_not_show_when_options_are_printed() -> None:
    options = WriteOptions.parse({"queue": "mail", "url": "redis://:secret@host/0"})

    assert options.url == "redis://:secret@host/0"
    assert "secret" not in repr(options)
