from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.embedded.people import a_plain_environment

CONFTEST = 'pytest_plugins = ["skep.testing.fixtures"]\n'

TESTS = """
import os
import subprocess
import sys

import pytest

from skep.embedded import connect_path, default_url
from skep.errors import NoEmbeddedServer

seen = []


@pytest.mark.parametrize("turn", [1, 2])
def test_each_has_an_empty_server(skep_url, skep_server, turn):
    client = skep_server.client()
    seen.append((skep_url, skep_server.pid))
    assert client.dbsize() == 0
    client.set("job", turn)
    client.close()


def test_it_is_the_same_server_for_all_and_comes_back_after_a_crash(skep_url, skep_server):
    assert seen == [(skep_url, skep_server.pid)] * 2
    skep_server.kill()


def test_here_and_in_other_processes_it_is_the_default(skep_url, skep_server):
    code = "from skep.embedded import default_url; print(default_url())"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert default_url() == there.strip() == skep_url == skep_server.url
    assert skep_server.client().ping()
    assert skep_server.pid != seen[0][1]


def test_without_it_a_developers_jobs_are_not_touched():
    assert "SKEP_URL" not in os.environ
    with pytest.raises(NoEmbeddedServer):
        connect_path(default_url())
"""

LOADED = """
import sys, pytest, skep
before = set(sys.modules)
import skep.testing.fixtures
print(*({"redis", "asyncio", "msgspec", "uvloop"} & (set(sys.modules) - before)))
"""


def test_the_fixtures_give_each_test_an_empty_server_and_send_queues_there(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_inner.py").write_text(TESTS)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", tmp_path],
        cwd=tmp_path,
        env=a_plain_environment(XDG_DATA_HOME=str(tmp_path / "home")),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "5 passed" in done.stdout, done.stdout
    assert not (tmp_path / "home").exists()


def test_a_run_that_wants_no_server_loads_no_client() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
