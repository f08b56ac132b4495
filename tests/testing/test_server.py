from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from skep.embedded import find_binary
from skep.errors import NoEmbeddedServer
from skep.testing import Server
from tests.embedded.people import alive, connected, until

OWN = """
import sys
from skep.testing import Server

server = Server().start()
print(server.pid, server.folder, flush=True)
sys.stdin.read()
"""


def asked(server: Server, *command: str) -> Any:
    with connected(server.path) as client:
        return client.execute_command(*command)


def test_a_server_answers_keeps_nothing_and_leaves_nothing() -> None:
    with Server() as server:
        pid, folder = server.pid, server.folder

        found = [asked(server, "CONFIG", "GET", name)[name] for name in ("save", "appendonly", "port")]

        assert found == ["", "no", "0"]
        assert server.url == f"unix://{server.path}"
    assert not alive(pid)
    assert not folder.exists()


def test_its_settings_are_given_by_name_and_changed_while_it_runs() -> None:
    with Server(maxmemory="10mb", appendonly=True, databases=4) as server:
        server.config_set(maxmemory="5mb", maxmemory_policy="noeviction", save=(60, 1))

        found = {name: asked(server, "CONFIG", "GET", name)[name] for name in ("maxmemory", "databases", "save")}

    assert found == {"maxmemory": str(5 << 20), "databases": "4", "save": "60 1"}


def test_what_it_was_told_to_keep_is_there_after_a_restart_and_a_crash() -> None:
    with Server(appendonly=True) as server:
        url = server.url
        asked(server, "SET", "job", "kept")

        server.restart()
        server.kill()
        server.start()

        assert asked(server, "GET", "job") == "kept"
        assert server.url == url


def test_a_stopped_server_refuses_and_says_that_it_does_not_run() -> None:
    with Server() as server:
        pid = server.pid

        server.stop()

        assert not server.alive()
        assert not alive(pid)
        with pytest.raises(RuntimeError, match=r"start\(\) it"):
            _ = server.pid
        server.start()
        with pytest.raises(RuntimeError, match="runs already"):
            server.start()


def test_a_server_with_a_port_listens_on_loopback_and_its_url_names_it() -> None:
    with Server(port=0) as server:
        client: Any = Redis.from_url(server.url)

        found = client.config_get("bind")
        client.close()

    assert server.url.startswith("redis://127.0.0.1:")
    assert found == {"bind": "127.0.0.1"}


def test_all_its_databases_are_emptied_at_once() -> None:
    with Server() as server, connected(server.path) as client:
        client.set("job", "one")
        client.select(3)
        client.set("job", "other")

        server.empty()

        assert client.info("keyspace") == {}


def test_a_program_is_found_by_its_name_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redis-server").symlink_to(find_binary())
    monkeypatch.setenv("PATH", str(tmp_path))

    with Server("redis-server") as server:
        assert asked(server, "PING")


def test_a_program_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(NoEmbeddedServer, match="'no-such-server'"):
        Server("no-such-server")


def test_a_server_that_does_not_start_is_an_error_with_its_log_and_leaves_nothing() -> None:
    server = Server(no_such_setting=1)
    folder = server.folder

    with pytest.raises(NoEmbeddedServer, match=r"(?s)does not start; its log ends.*no-such-setting"), server:
        pass

    assert not folder.exists()


def test_a_file_that_is_no_program_is_an_error_too(tmp_path: Path) -> None:
    (tmp_path / "server").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "server").chmod(0o755)

    with pytest.raises(NoEmbeddedServer, match="does not start"):
        Server(tmp_path / "server").__enter__()


def test_data_in_a_folder_that_was_given_stay_there(tmp_path: Path) -> None:
    folder = tmp_path / ("a long name " * 9)
    with Server(folder=folder, appendonly=True) as server:
        asked(server, "SET", "job", "kept")

    with Server(folder=folder, appendonly=True) as server:
        found = asked(server, "GET", "job")

    assert found == "kept"


def test_a_server_ends_with_an_owner_that_was_killed_and_its_folder_goes_too() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout
        pid, folder = owner.stdout.readline().split()
        owner.kill()

    until(lambda: not alive(int(pid)), "the server has ended")
    until(lambda: not Path(folder).exists(), "its folder is gone")


def test_a_server_outlives_the_thread_that_started_it() -> None:
    server = Server()
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    try:
        assert asked(server, "PING")
    finally:
        server.close()


@pytest.mark.parametrize("how", ["stop", "kill", "close"])
def test_a_server_that_a_test_has_frozen_can_be_ended(how: str) -> None:
    with Server() as server:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)

        getattr(server, how)()

        assert not alive(pid)


def test_a_folder_that_is_gone_already_is_no_trouble_at_the_end() -> None:
    with Server() as server:
        shutil.rmtree(server.folder)
        pid = server.pid

    assert not alive(pid)
