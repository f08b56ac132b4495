from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from skep.embedded import Running, connect_path, join, running
from skep.embedded.keeper import KEEPER_LOCK, Settings
from skep.errors import NoEmbeddedServer
from tests.embedded.people import SHORT, alive, at_rest, connected, joiners, until


def a_server(url: str, folder: Path) -> Running:
    """One that holds a job, and whose keeper has told of it."""
    with connected(connect_path(url, grace=60)) as client:
        client.set("job", "kept")
    found = running(folder)
    assert found is not None
    return found


def the_job(url: str) -> str | None:
    with connected(connect_path(url, grace=SHORT)) as client:
        found: str | None = client.get("job")
        return found


def test_after_a_killed_server_the_next_client_gets_a_new_one_with_the_data(url: str, folder: Path) -> None:
    before = a_server(url, folder)

    os.kill(before.server_pid, signal.SIGKILL)

    assert the_job(url) == "kept"
    after = running(folder)
    assert after is not None
    assert after.server_pid != before.server_pid


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels leave it to the next keeper")
def test_a_killed_keeper_takes_its_server_along_with_all_data_written(url: str, folder: Path) -> None:
    before = a_server(url, folder)

    os.kill(before.keeper_pid, signal.SIGKILL)

    until(lambda: not alive(before.server_pid), "the server has ended")
    assert "ready to exit" in (folder / "server.log").read_text()
    assert the_job(url) == "kept"


def test_a_server_that_outlives_its_keeper_is_replaced_by_one_that_is_kept(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "Settings", functools.partial(Settings, bound=False))
    before = a_server(url, folder)
    with connected(before.socket) as client:
        os.kill(before.keeper_pid, signal.SIGKILL)
        until(lambda: len(client.client_list()) == 1, "the keeper's connection is gone")

    assert the_job(url) == "kept"

    assert not alive(before.server_pid)
    until(lambda: at_rest(folder), "the new one has ended in its turn")


def test_a_dead_keeper_and_a_dead_server_leave_nothing_in_the_way(url: str, folder: Path) -> None:
    before = a_server(url, folder)

    os.kill(before.keeper_pid, signal.SIGSTOP)
    os.kill(before.server_pid, signal.SIGKILL)
    os.kill(before.keeper_pid, signal.SIGKILL)
    until(lambda: at_rest(folder), "both are dead")

    assert Path(before.socket).exists()
    assert running(folder) == before
    assert the_job(url) == "kept"


def test_processes_that_have_the_numbers_of_dead_ones_are_left_alone(url: str, folder: Path) -> None:
    a_server(url, folder)
    end_both(folder)
    told = {"server_pid": os.getpid(), "keeper_pid": os.getppid(), "keeper_connection": 3, "host": "here"}
    (folder / "running.json").write_text(json.dumps(told | {"socket": str(folder / "server.sock")}))

    assert the_job(url) == "kept"

    assert alive(os.getppid())


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"socket": 1}'])
def test_a_note_of_the_keeper_that_cannot_be_read_counts_as_none(url: str, folder: Path, torn: str) -> None:
    a_server(url, folder)
    end_both(folder)
    (folder / "running.json").write_text(torn)

    assert the_job(url) == "kept"


@pytest.mark.parametrize("sign", ["keeper.lock", "server.lock", "server.sock", "running.json"])
def test_a_starter_that_is_killed_half_way_is_in_nobodys_way(url: str, folder: Path, sign: str) -> None:
    with joiners(1, url) as [starter]:
        starter.begin()
        until((folder / sign).exists, f"the start has come to {sign}")

        starter.kill()

        with connected(connect_path(url, grace=SHORT)) as client:
            assert client.info("server")["process_id"] == running_server(folder)
    until(lambda: at_rest(folder), "the server has ended")


@pytest.mark.parametrize("sign", ["keeper.lock", "server.lock", "server.sock"])
def test_a_keeper_that_is_killed_half_way_is_followed_by_another_one(url: str, folder: Path, sign: str) -> None:
    with joiners(1, url) as [starter]:
        starter.begin()
        until((folder / sign).exists, f"the start has come to {sign}")
        keeper = int(until((folder / KEEPER_LOCK).read_text, "the keeper has told its number"))

        os.kill(keeper, signal.SIGKILL)

        assert starter.server() == running_server(folder)


def test_a_keeper_that_dies_each_time_is_an_error_and_no_endless_loop(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "_where_redis_lies", lambda: ["/nowhere"])

    with pytest.raises(NoEmbeddedServer, match=r"its keeper died; see server\.log there"):
        connect_path(url)


def test_a_socket_that_somebody_removed_is_made_anew_with_the_data(url: str, folder: Path) -> None:
    before = a_server(url, folder)

    Path(before.socket).unlink()

    assert the_job(url) == "kept"
    assert not alive(before.server_pid)


def test_a_folder_that_somebody_removed_ends_its_server(url: str, folder: Path) -> None:
    before = a_server(url, folder)

    shutil.rmtree(folder)

    until(lambda: not alive(before.keeper_pid), "the keeper has ended")
    assert not alive(before.server_pid)
    assert not folder.exists()


def test_a_keeper_whose_connection_was_cut_goes_on_keeping(url: str, folder: Path) -> None:
    before = a_server(url, folder)
    with connected(before.socket) as client:
        client.client_kill_filter(_id=str(before.keeper_connection))

        after = until(lambda: told_anew(folder, before), "the keeper has told its new connection")

        assert connect_path(url) == before.socket
    assert (after.server_pid, after.keeper_pid) == (before.server_pid, before.keeper_pid)


def test_a_server_that_cannot_read_its_data_is_an_error_with_the_end_of_its_log(url: str, folder: Path) -> None:
    a_server(url, folder)
    end_both(folder)
    (folder / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense")

    with pytest.raises(NoEmbeddedServer, match=r"(?s)the server ended at once.*manifest"):
        connect_path(url)


def told_anew(folder: Path, before: Running) -> Running | None:
    found = running(folder)
    return found if found and found.keeper_connection != before.keeper_connection else None


def running_server(folder: Path) -> int:
    found = running(folder)
    assert found is not None
    return found.server_pid


def end_both(folder: Path) -> None:
    found = running(folder)
    assert found is not None
    os.kill(found.keeper_pid, signal.SIGTERM)
    until(lambda: at_rest(folder), "the server has ended")
