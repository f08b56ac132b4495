"""Where the server is, how to come in and how long to wait: one value that queues may share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis.credentials import CredentialProvider

from skep.core.lanes import LONGEST
from skep.errors import InvalidOption
from skep.store.url import Endpoint, parse, safe

# What skep says of every connection, whatever else is wanted: replies as bytes in the older protocol's plain
# shapes, and no resends but its own (redis-py's would repeat a call whose first copy took effect).
OURS: dict[str, Any] = {
    "protocol": 2,
    "decode_responses": False,
    "retry_on_timeout": False,
    "retry_on_error": [],
    "health_check_interval": 0,
}
NOT_OPTIONS = frozenset((*OURS, "retry", "socket_timeout", "socket_connect_timeout", "host", "port", "path", "ssl"))

MOST = 1e9

# A claim may bring 256 KiB of records: few reads for it, and little memory for each connection that rests.
READ_SIZE = 65_536


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, and how long to wait for it. May be given to many queues instead of a url.

    url              `redis:// rediss:// valkey:// valkeys:// unix:// embedded:// redis+sentinel:// redis+cluster://`;
                     None: `SKEP_URL`, else an embedded server
    connect_timeout  seconds for a connection to be made
    timeout          seconds for one answer
    retry_for        seconds for which a call is said again after a connection was lost or refused: 0 to 600
    wait_replicas    so many copies must have a change before its call returns, else it is `ServerUnavailable`
    ssl              options of TLS, by redis-py's names without their `ssl_`: `{"ca_certs": "ca.pem"}`
    credentials      a redis-py credential provider, for tokens that change
    client_options   options of redis-py's connections, handed on as they are
    """

    url: str | None = None
    connect_timeout: float = 5
    timeout: float = 10
    retry_for: float = 5
    wait_replicas: int = 0
    ssl: Mapping[str, Any] | None = field(default=None, hash=False, repr=False)
    credentials: CredentialProvider | None = field(default=None, repr=False)
    client_options: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("connect_timeout", "timeout"):
            self._check(name, "a number of seconds from 0.001 on, such as 5", least=0.001)
        self._check("retry_for", f"a number of seconds from 0 to {LONGEST:.0f}, such as 5", least=0, most=LONGEST)
        self._check("wait_replicas", "a whole number of replicas, 0 for none", least=0, whole=True)
        ours = sorted(NOT_OPTIONS & set(self.client_options))
        if ours:
            wanted = f"options of redis-py's connections other than {', '.join(ours)}, which are skep's to choose"
            raise InvalidOption("client_options", dict.fromkeys(ours, "..."), wanted)
        if self.url is not None:
            self._agree(parse(self.url))

    def __repr__(self) -> str:
        url = None if self.url is None else safe(self.url)
        times = f"connect_timeout={self.connect_timeout}, timeout={self.timeout}, retry_for={self.retry_for}"
        return f"Connection({url!r}, {times}, wait_replicas={self.wait_replicas})"

    def _check(self, name: str, wanted: str, *, least: float, most: float = MOST, whole: bool = False) -> None:
        value: Any = getattr(self, name)
        fine = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not fine or not least <= value <= most:
            raise InvalidOption(name, value, wanted)

    def _agree(self, endpoint: Endpoint) -> None:
        if self.ssl and not endpoint.tls:
            raise InvalidOption("ssl", dict.fromkeys(self.ssl, "..."), "effect with rediss:// or valkeys:// only")
        if self.credentials is not None and endpoint.options.keys() & {"username", "password"}:
            raise InvalidOption("credentials", self.credentials, "the place of a user in the url: name one of the two")

    @property
    def safe_url(self) -> str:
        """The url without its passwords, for logs and errors."""
        return self.endpoint().safe_url

    def endpoint(self) -> Endpoint:
        """What the url says, now: without a url, what the environment says."""
        if self.url is not None:
            return parse(self.url)
        from skep import embedded  # only who uses an embedded server pays for its import

        endpoint = parse(embedded.default_url())
        self._agree(endpoint)
        return endpoint

    def options(self, endpoint: Endpoint) -> dict[str, Any]:
        """How redis-py makes a connection."""
        tls = {f"ssl_{name}": value for name, value in (self.ssl or {}).items()}
        common: dict[str, Any] = {
            "socket_connect_timeout": self.connect_timeout,
            "socket_timeout": self.timeout,
            "socket_read_size": READ_SIZE,
            "driver_info": None,
            "credential_provider": self.credentials,
        }
        return common | endpoint.options | tls | dict(self.client_options) | OURS
