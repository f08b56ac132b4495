"""Urls of servers: what each form says, and what is wrong with one that says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from skep.errors import InvalidOption

Kind = Literal["tcp", "unix", "embedded", "sentinel", "cluster"]

EXAMPLES = (
    "a url such as redis://localhost:6379/0, rediss://user:password@host, unix:///run/valkey.sock, embedded://,"
    " redis+sentinel://host1,host2/service or redis+cluster://host1:6379,host2:6379"
)
_FAMILIES: tuple[tuple[str, Kind], ...] = (("", "tcp"), ("+sentinel", "sentinel"), ("+cluster", "cluster"))
SCHEMES: dict[str, tuple[Kind, bool]] = {"unix": ("unix", False), "embedded": ("embedded", False)}
SCHEMES.update(
    (name + suffix, (kind, name in {"rediss", "valkeys"}))
    for name in ("redis", "rediss", "valkey", "valkeys")
    for suffix, kind in _FAMILIES
)

YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# What may stand behind the question mark, and how it is read.
WORDS: dict[str, Callable[[str], Any]] = {"db": int, "username": str, "password": str}
TLS_WORDS: dict[str, Callable[[str], Any]] = {
    "ssl_cert_reqs": str,
    "ssl_ca_certs": str,
    "ssl_ca_path": str,
    "ssl_certfile": str,
    "ssl_keyfile": str,
    "ssl_password": str,
    "ssl_check_hostname": lambda text: YES_NO[text.lower()],
}
SENTINEL_WORDS: dict[str, Callable[[str], Any]] = {"sentinel_username": str, "sentinel_password": str}

HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\s:,\[\]/@]+))(?::(?P<port>\d{1,5}))?")
SECRETS = re.compile(r"([?&][^=&#]*password=)[^&#]*", re.IGNORECASE)


def safe(url: str) -> str:
    """The url without its passwords, for logs and errors."""
    start, mark, rest = url.partition("://")
    # A password with an unescaped / ? or @ would hide from a parser: all up to the last @ may be one.
    if not mark:
        start, rest = "", start
    user, at, server = rest.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return SECRETS.sub(r"\1***", f"{start}{mark}{user}{at}{server}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a url says: where the server is, and how to come in."""

    kind: Kind
    safe_url: str
    hosts: tuple[tuple[str, int], ...] = ()
    path: str = ""
    service: str = ""
    tls: bool = False
    options: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    sentinel_options: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)


def parse(url: str) -> Endpoint:
    """What this url says. A wrong one is `InvalidOption`, with what is right, without its password."""
    try:
        parts = urlsplit(url)
        kind, tls = SCHEMES[parts.scheme]
    except (ValueError, KeyError):
        raise _wrong(url) from None
    options = _options(url, parts.query, kind, tls=tls)
    user, at, where = parts.netloc.rpartition("@")
    if at:
        options |= _user(user)
    if parts.fragment or (kind == "embedded" and (parts.netloc or parts.query)):
        raise _wrong(url, "embedded:// or embedded:///folder" if kind == "embedded" else EXAMPLES)
    sentinel_options = {name.removeprefix("sentinel_"): options.pop(name) for name in SENTINEL_WORDS if name in options}
    path = unquote(parts.path)
    hosts: tuple[tuple[str, int], ...] = ()
    service = ""
    if kind == "embedded":
        path = url
    elif kind == "unix":
        if where or not path.strip("/"):
            raise _wrong(url, "a path with three slashes before it, such as unix:///run/valkey.sock")
    else:
        hosts = _hosts(url, where, kind)
        service, path = _service(url, path, kind, options), ""
    return Endpoint(kind, safe(url), hosts, path, service, tls, options, sentinel_options)


def _wrong(url: str, wanted: str = EXAMPLES) -> InvalidOption:
    return InvalidOption("url", safe(url), wanted)


def _options(url: str, query: str, kind: Kind, *, tls: bool) -> dict[str, Any]:
    words = WORDS | (TLS_WORDS if tls else {}) | (SENTINEL_WORDS if kind == "sentinel" else {})
    options: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        try:
            options[name] = words[name](text)
        except (KeyError, ValueError):
            raise _wrong(url, f"behind its question mark only {', '.join(words)}, not {name!r} like this") from None
    return options


def _user(user: str) -> dict[str, str]:
    name, _, password = user.partition(":")
    found = {"username": unquote(name), "password": unquote(password)}
    return {word: text for word, text in found.items() if text}


def _hosts(url: str, where: str, kind: Kind) -> tuple[tuple[str, int], ...]:
    default = 26379 if kind == "sentinel" else 6379
    texts = where.split(",") if kind != "tcp" else [where or "localhost"]
    hosts: list[tuple[str, int]] = []
    for text in texts:
        found = HOST.fullmatch(text)
        port = int(found["port"] or default) if found else 0
        if not found or not 0 < port < 65536:
            raise _wrong(url)
        hosts.append((unquote(found["six"] or found["name"]), port))
    return tuple(hosts)


def _service(url: str, path: str, kind: Kind, options: dict[str, Any]) -> str:
    """The path of a url: a database, or a Sentinel's service and a database. A cluster has neither."""
    words = [word for word in path.split("/") if word]
    service = words.pop(0) if kind == "sentinel" and words else ""
    if (
        (kind == "sentinel" and not service)
        or len(words) > 1
        or not all(re.fullmatch("[0-9]{1,9}", word) for word in words)
    ):
        raise _wrong(url)
    if words:
        options.setdefault("db", int(words[0]))
    if kind == "cluster" and options.get("db"):
        raise _wrong(url, "no database: a cluster has only number 0, as in redis+cluster://host1:6379,host2:6379")
    return service
