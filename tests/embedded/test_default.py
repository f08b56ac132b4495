from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skep.embedded import connect_path, default_url, redirect, under_pytest
from skep.errors import NoEmbeddedServer
from tests.embedded.people import SHORT, a_plain_environment, connected

JOIN = "import sys; from skep.embedded import connect_path; print(connect_path(sys.argv[1], grace=0.1))"

LOADED = """
import sys, skep
before = set(sys.modules)
import skep.embedded
print("redis" in set(sys.modules) - before)
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is said to skep when a test begins, and no redirection stays."""
    for name in [name for name in os.environ if name.startswith("SKEP_")]:
        monkeypatch.delenv(name)
    yield
    redirect(None)


def test_a_queue_without_a_url_is_embedded_unless_the_environment_says_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = default_url()

    monkeypatch.setenv("SKEP_URL", "redis://elsewhere")
    said = default_url()

    assert (plain, said) == ("embedded://", "redis://elsewhere")


def test_a_redirection_goes_before_the_environment_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKEP_URL", "redis://elsewhere")

    redirect("unix:///of/a/test")
    during = default_url()
    redirect(None)

    assert (during, default_url()) == ("unix:///of/a/test", "redis://elsewhere")


def test_under_pytest_a_developers_server_is_refused_and_the_text_names_the_fixture() -> None:
    with pytest.raises(NoEmbeddedServer, match=r"skep_url.*SKEP_URL"):
        connect_path("embedded://")


def test_under_pytest_a_folder_that_was_named_is_allowed(url: str) -> None:
    with connected(connect_path(url, grace=SHORT)) as client:
        assert client.ping()


@pytest.mark.parametrize("word", ["PYTEST_CURRENT_TEST", "PYTEST_VERSION"])
def test_a_program_that_a_test_starts_is_refused_too(tmp_path: Path, word: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOIN, "embedded://"],
        env=a_plain_environment(XDG_DATA_HOME=str(tmp_path), **{word: "1"}),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "NoEmbeddedServer" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_this_run_of_pytest_is_recognised() -> None:
    assert under_pytest()


@pytest.mark.parametrize("word", ["0", "no", "OFF", "false"])
def test_an_embedded_server_can_be_forbidden_also_with_a_folder(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("SKEP_EMBEDDED", word)

    with pytest.raises(NoEmbeddedServer, match=f"SKEP_EMBEDDED={word}: set SKEP_URL"):
        connect_path(url)

    assert not folder.exists()


@pytest.mark.parametrize("word", ["", "1", "yes"])
def test_other_words_forbid_nothing(url: str, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("SKEP_EMBEDDED", word)

    with connected(connect_path(url, grace=SHORT)) as client:
        assert client.ping()


def test_what_is_asked_before_any_server_is_used_loads_no_client() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
