from __future__ import annotations

from collections.abc import Iterator

import pytest

from skep.errors import ServerUnsuited
from skep.store import checks
from skep.store.checks import Finding, demand, findings, parse_info, parse_settings
from skep.testing import Server
from tests.store.conftest import Opener

HERE_MS = 1_700_000_000_000
SOUND = {
    "redis_version": "7.2.4",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
    "server_time_usec": str(HERE_MS * 1000),
}
TOLD = {"appendfsync": "everysec", "save": ""}


@pytest.fixture
def own() -> Iterator[Server]:
    with Server(appendonly=True) as server:
        yield server


def test_there_is_nothing_to_say_of_a_sound_server() -> None:
    assert findings(SOUND, TOLD, HERE_MS) == []


@pytest.mark.parametrize(
    ("info", "settings", "level", "text"),
    [
        ({"redis_version": "6.2.14"}, TOLD, "error", "Redis 6.2.14"),
        ({"role": "slave", "master_host": "cache", "master_port": "6379"}, TOLD, "error", "replica of cache:6379"),
        ({"maxmemory_policy": "allkeys-lru"}, TOLD, "error", "maxmemory-policy noeviction"),
        ({"maxmemory_policy": "volatile-ttl"}, TOLD, "warning", "maxmemory-policy noeviction"),
        ({"aof_last_write_status": "err"}, TOLD, "error", "cannot write its append-only file"),
        ({"aof_enabled": "0"}, TOLD, "warning", "in memory only"),
        ({"aof_enabled": "0"}, {"save": "3600 1"}, "warning", "snapshots only"),
        ({"aof_enabled": "0"}, None, "note", "does not tell"),
        ({}, {"appendfsync": "no"}, "warning", "appendfsync everysec"),
        ({"server_time_usec": str((HERE_MS + 60_000) * 1000)}, TOLD, "warning", "60 s ahead of"),
        ({"server_time_usec": str((HERE_MS - 6_000) * 1000)}, TOLD, "warning", "6 s behind"),
    ],
)
def test_what_may_lose_jobs_is_found_and_says_what_to_do(
    info: dict[str, str], settings: dict[str, str] | None, level: str, text: str
) -> None:
    [found] = findings(SOUND | info, settings, HERE_MS)

    assert found.level == level
    assert text in found.text


def test_any_valkey_is_new_enough() -> None:
    info = SOUND | {"redis_version": "6.9.9", "server_name": "valkey", "valkey_version": "8.0.1"}

    assert findings(info, TOLD, HERE_MS) == []


def test_a_server_that_tells_next_to_nothing_of_itself_is_tolerated() -> None:
    assert [found.level for found in findings({}, None, HERE_MS)] == ["note"]


def test_errors_are_raised_together_and_warnings_are_not() -> None:
    warned = Finding("warning", "a")
    demand([warned])

    with pytest.raises(ServerUnsuited, match=r"^b; c$"):
        demand([warned, Finding("error", "b"), Finding("error", "c")])


def test_replies_are_read_as_names_and_texts() -> None:
    assert parse_info(b"# Server\r\nredis_version:7.2.4\r\n\r\nexecutable:/a:b\r\n") == {
        "redis_version": "7.2.4",
        "executable": "/a:b",
    }
    assert parse_settings([[b"save", b""], [], [b"appendfsync", b"always"]]) == {"save": "", "appendfsync": "always"}


def test_a_real_server_that_evicts_jobs_is_refused(opener: Opener, own: Server) -> None:
    client = opener(own.url)
    assert client.check() == []
    own.config_set(**{"maxmemory-policy": "allkeys-lru"})

    with pytest.raises(ServerUnsuited, match="allkeys-lru"):
        checks.demand(client.check())


def test_a_managed_server_that_hides_its_settings_is_tolerated(opener: Opener, own: Server) -> None:
    own.config_set(appendonly=False)
    with own.client() as raw:
        raw.acl_setuser("default", enabled=True, nopass=True, commands=["+@all", "-config"], keys=["*"])

    found = opener(own.url).check()

    assert [one.level for one in found] == ["note"]
