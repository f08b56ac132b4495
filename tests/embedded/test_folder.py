from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skep.embedded import connect_path, running, url_of
from skep.embedded.folder import LONGEST_SOCKET, prepare, socket_path
from skep.errors import InvalidOption, NoEmbeddedServer
from tests.embedded.people import SHORT, connected, end


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_and_the_socket_are_private_and_no_port_is_opened(url: str, folder: Path) -> None:
    with connected(connect_path(url, grace=SHORT)) as client:
        port = client.config_get("port")
        found = running(folder)

        assert port == {"port": "0"}
        assert found is not None
        assert (mode(folder), mode(Path(found.socket))) == (0o700, 0o700)
        assert {mode(entry) & 0o077 for entry in (folder / "appendonlydir").iterdir()} == {0}


def test_what_is_written_is_kept_in_an_append_only_file_and_nothing_is_evicted(url: str) -> None:
    wanted = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory-policy": "noeviction"}

    with connected(connect_path(url, grace=SHORT)) as client:
        found = {name: text for name in wanted for text in client.config_get(name).values()}

    assert found == wanted


def test_a_folder_that_was_open_to_others_is_closed(url: str, folder: Path) -> None:
    folder.mkdir(mode=0o755)

    connect_path(url, grace=SHORT)

    assert mode(folder) == 0o700


@pytest.mark.parametrize("name", ["a b", 'quo"te', "back\\slash", "naïve-蜂", "%41#?", "new\nline", "'$x'"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    try:
        with connected(connect_path(url_of(folder), grace=SHORT)) as client:
            client.set("job", "kept")

        assert (folder / "appendonlydir").is_dir()
    finally:
        end(folder)


def test_a_folder_with_a_long_name_gets_a_short_private_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long " * 20) / "data"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    try:
        with connected(connect_path(url_of(folder), grace=SHORT)) as client:
            client.set("job", "kept")
        found = running(folder)

        assert found is not None
        assert Path(found.socket).parent == tmp_path / f"skep-{os.geteuid()}"
        assert mode(Path(found.socket).parent) == 0o700
    finally:
        end(folder)
    assert list((tmp_path / f"skep-{os.geteuid()}").iterdir()) == []


def test_a_short_socket_is_found_by_processes_with_another_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long " * 20) / "data"
    (tmp_path / "other").mkdir()
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        first = connect_path(url_of(folder))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))

        second = connect_path(url_of(folder))

        assert second == first
    finally:
        end(folder)


def test_a_short_socket_never_lies_in_a_folder_that_others_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    (tmp_path / f"skep-{os.geteuid()}").mkdir()
    (tmp_path / f"skep-{os.geteuid()}").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    found = socket_path(long)

    assert not found.is_relative_to(tmp_path)
    assert len(os.fsencode(found)) <= LONGEST_SOCKET
    assert mode(found.parent) == 0o700


def test_a_folder_with_other_things_in_it_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    (folder / "letters").touch()

    with pytest.raises(InvalidOption, match="a folder of its own"):
        connect_path(url_of(folder))

    assert [entry.name for entry in folder.iterdir()] == ["letters"]
    assert mode(folder) == 0o755


def test_a_folder_that_is_for_all_is_refused_also_while_it_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)

    with pytest.raises(InvalidOption, match="a folder of its own"):
        connect_path(url_of(folder))

    assert mode(folder) == 0o1777


def test_a_mounted_folder_with_nothing_but_lost_and_found_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    (folder / "lost+found").mkdir(parents=True)

    prepare(folder)
    prepare(folder)

    assert mode(folder) == 0o700


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoEmbeddedServer, match="set SKEP_URL to a server"):
        connect_path(url_of(Path(f"{tmp_path}/file{below}")))
