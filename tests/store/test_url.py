from __future__ import annotations

from typing import Any

import pytest

from skep.errors import InvalidOption
from skep.store.url import Endpoint, parse, safe


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("redis://", {"kind": "tcp", "hosts": (("localhost", 6379),)}),
        ("valkey://cache", {"kind": "tcp", "hosts": (("cache", 6379),)}),
        ("redis://cache:7000/3", {"hosts": (("cache", 7000),), "options": {"db": 3}}),
        ("redis://cache?db=4", {"options": {"db": 4}}),
        ("redis://:pw@cache", {"options": {"password": "pw"}}),
        ("redis://ann@cache", {"options": {"username": "ann"}}),
        ("redis://ann:p%40%3Aw@cache", {"options": {"username": "ann", "password": "p@:w"}}),
        ("redis://[::1]:7000", {"hosts": (("::1", 7000),)}),
        ("rediss://cache", {"kind": "tcp", "tls": True}),
        ("valkeys://cache?ssl_ca_certs=/ca.pem&ssl_check_hostname=no", {
            "tls": True, "options": {"ssl_ca_certs": "/ca.pem", "ssl_check_hostname": False},
        }),
        ("unix:///run/valkey.sock", {"kind": "unix", "path": "/run/valkey.sock"}),
        ("unix:///run/a%20b.sock?db=2", {"path": "/run/a b.sock", "options": {"db": 2}}),
        ("unix://ann:pw@/run/valkey.sock", {
            "path": "/run/valkey.sock", "options": {"username": "ann", "password": "pw"},
        }),
        ("embedded://", {"kind": "embedded", "path": "embedded://"}),
        ("embedded:///data/jobs", {"kind": "embedded", "path": "embedded:///data/jobs"}),
        ("redis+sentinel://h1,h2:5000/mymaster", {
            "kind": "sentinel", "hosts": (("h1", 26379), ("h2", 5000)), "service": "mymaster",
        }),
        ("redis+sentinel://ann:pw@h1/mymaster/2?sentinel_password=s3", {
            "service": "mymaster", "options": {"username": "ann", "password": "pw", "db": 2},
            "sentinel_options": {"password": "s3"},
        }),
        ("rediss+sentinel://h1/main", {"kind": "sentinel", "tls": True}),
        ("redis+cluster://h1:7000,h2:7001", {"kind": "cluster", "hosts": (("h1", 7000), ("h2", 7001))}),
        ("valkeys+cluster://pw:x@h1", {"kind": "cluster", "tls": True}),
    ],
)  # fmt: skip
def test_every_form_of_url_says_where_the_server_is(url: str, wanted: dict[str, Any]) -> None:
    found = parse(url)

    assert {name: getattr(found, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cache:6379",
        "http://cache",
        "redis:/cache",
        "redis://cache:port",
        "redis://cache:70000",
        "redis://a,b",
        "redis://cache/one",
        "redis://cache/1/2",
        "redis://cache?db=one",
        "redis://cache?timeout=5",
        "redis://cache?ssl_ca_certs=/ca.pem",
        "redis://cache#part",
        "redis://[::1",
        "unix://valkey.sock",
        "unix://",
        "unix:///",
        "embedded://folder",
        "embedded:///folder?db=1",
        "redis+sentinel://h1,h2",
        "redis+sentinel:///mymaster",
        "redis+cluster://h1/1",
        "redis+cluster://h1,,h2",
    ],
)
def test_a_wrong_url_is_refused_with_an_example_of_a_right_one(url: str) -> None:
    with pytest.raises(
        InvalidOption, match=r"url takes .*(redis://|unix:///|embedded:///|cluster://|db, username)"
    ) as caught:
        parse(url)

    assert caught.value.option == "url"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ann:secret@cache/1", "redis://ann:***@cache/1"),
        ("redis://:secret@cache", "redis://:***@cache"),
        ("redis://ann:se@cr/et@cache", "redis://ann:***@cache"),
        ("redis://ann@cache", "redis://ann@cache"),
        ("unix:///run/valkey.sock?password=secret&db=1", "unix:///run/valkey.sock?password=***&db=1"),
        ("redis+sentinel://h1/main?sentinel_password=secret", "redis+sentinel://h1/main?sentinel_password=***"),
        ("ann:secret@cache", "ann:***@cache"),
        ("embedded:///data/jobs", "embedded:///data/jobs"),
    ],
)
def test_a_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert safe(url) == shown


@pytest.mark.parametrize("url", ["redis://ann:secret@cache:port", "ann:secret@cache", "unix://?password=secret"])
def test_the_error_about_a_wrong_url_does_not_tell_its_password(url: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse(url)

    assert "secret" not in f"{caught.value} {caught.value.value}"


def test_what_a_url_says_is_shown_without_its_passwords() -> None:
    found: Endpoint = parse("redis+sentinel://ann:secret@h1/main?sentinel_password=secret")

    assert "secret" not in repr(found)
