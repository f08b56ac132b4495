"""From a `Connection` to connections of redis-py, sync and async: where the server is now, and a socket.

The server is looked for anew for each of them, since it moves: a Sentinel names another primary, a slot of a
cluster goes to another node, an embedded server has ended and is started again on its folder.
"""

from __future__ import annotations

import asyncio
from typing import Any

import redis
from redis import asyncio as aioredis
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisClusterException, RedisError
from redis.exceptions import TimeoutError as LateReply
from redis.retry import Retry

from skep.store.connect import Connection

Address = tuple[str, int]

# redis-py gives its constructors no types, or leaves abstract what only another kind of connection needs.
_tcp: Any = redis.Connection
_tls: Any = redis.SSLConnection
_unix: Any = redis.UnixDomainSocketConnection
_node: Any = ClusterNode
_sentinels: Any = redis.Sentinel
_async_sentinels: Any = aioredis.Sentinel

TO_COME_IN = frozenset(("username", "password", "credential_provider"))


def embedded_path(url: str) -> str:
    """The socket of the embedded server of this url, which is started if it does not run."""
    from skep import embedded  # only who uses an embedded server pays for its import

    return embedded.connect_path(url)


class Way:
    """What both kinds of dialers know: what the url says, and redis-py's options."""

    def __init__(self, connection: Connection) -> None:
        self.endpoint = connection.endpoint()
        self.spread = self.endpoint.kind == "cluster"
        self._connection = connection
        self._options = connection.options(self.endpoint)

    def _of_socket(self, path: str) -> dict[str, Any]:
        return self._options | {"path": path}

    def _of_address(self, address: Address) -> dict[str, Any]:
        return self._options | {"host": address[0], "port": address[1]}

    def _to_find_nodes(self) -> dict[str, Any]:
        options = {name: value for name, value in self._options.items() if name in TO_COME_IN}
        tls = {name: value for name, value in self._options.items() if name.startswith("ssl_")}
        return options | self._patience() | ({"ssl": True, **tls} if self.endpoint.tls else {})

    def _to_ask_sentinels(self) -> dict[str, Any]:
        return self.endpoint.sentinel_options | self._patience()

    def _patience(self) -> dict[str, Any]:
        wait = self._connection.connect_timeout
        return {"socket_timeout": wait, "socket_connect_timeout": wait}


class Dialer(Way):
    """Makes connections that block."""

    def locate(self, key: str) -> Address | None:
        """The node of a cluster that serves this key; nothing where there is only one server."""
        if not self.spread:
            return None
        nodes = [_node(host, port) for host, port in self.endpoint.hosts]
        try:
            finder: Any = redis.RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), 0), **self._to_find_nodes())
            try:
                node = finder.get_node_from_key(key)
            finally:
                finder.close()
        except RedisClusterException as error:
            raise LostConnection(str(error)) from error
        return node.host, node.port

    def dial(self, node: Address | None) -> Any:
        """A connection of redis-py, connected."""
        made = self._make(node)
        made.connect()
        return made

    def _make(self, node: Address | None) -> Any:
        kind = self.endpoint.kind
        if kind == "unix":
            return _unix(**self._of_socket(self.endpoint.path))
        if kind == "embedded":
            return _unix(**self._of_socket(embedded_path(self.endpoint.path)))
        address = node or (self._primary() if kind == "sentinel" else self.endpoint.hosts[0])
        return (_tls if self.endpoint.tls else _tcp)(**self._of_address(address))

    def _primary(self) -> Address:
        asked = self._to_ask_sentinels() | {"retry": Retry(NoBackoff(), 0)}
        sentinels: Any = _sentinels(self.endpoint.hosts, sentinel_kwargs=asked)
        try:
            host, port = sentinels.discover_master(self.endpoint.service)
        finally:
            for client in sentinels.sentinels:
                client.close()
        return host, port


class AsyncDialer(Way):
    """Makes connections for an event loop. They know no timeouts of their own: the transport has them."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._options = self._options | {"socket_timeout": None}

    async def locate(self, key: str) -> Address | None:
        """The node of a cluster that serves this key; nothing where there is only one server."""
        if not self.spread:
            return None
        nodes = [AsyncClusterNode(host, port) for host, port in self.endpoint.hosts]
        finder: Any = aioredis.RedisCluster(
            startup_nodes=nodes, retry=AsyncRetry(NoBackoff(), 0), **self._to_find_nodes()
        )
        try:
            await finder.initialize()
            node = finder.get_node_from_key(key)
        except RedisClusterException as error:
            raise LostConnection(str(error)) from error
        finally:
            await finder.aclose()
        return node.host, node.port

    async def dial(self, node: Address | None) -> Any:
        """A connection of redis-py, connected."""
        made = await self._make(node)
        try:
            async with asyncio.timeout(self._connection.connect_timeout):
                await made.connect()
        except BaseException as error:
            await made.disconnect(nowait=True)
            if isinstance(error, TimeoutError):
                raise LateReply("no connection in time") from None
            if isinstance(error.__cause__, RedisError):
                # redis-py wraps what a server says to a client that comes in by a unix socket.
                raise error.__cause__ from None
            raise
        return made

    async def _make(self, node: Address | None) -> Any:
        kind = self.endpoint.kind
        if kind == "unix":
            return aioredis.UnixDomainSocketConnection(**self._of_socket(self.endpoint.path))
        if kind == "embedded":
            path = await asyncio.to_thread(embedded_path, self.endpoint.path)
            return aioredis.UnixDomainSocketConnection(**self._of_socket(path))
        address = node or (await self._primary() if kind == "sentinel" else self.endpoint.hosts[0])
        return (aioredis.SSLConnection if self.endpoint.tls else aioredis.Connection)(**self._of_address(address))

    async def _primary(self) -> Address:
        asked = self._to_ask_sentinels() | {"retry": AsyncRetry(NoBackoff(), 0)}
        sentinels: Any = _async_sentinels(self.endpoint.hosts, sentinel_kwargs=asked)
        try:
            host, port = await sentinels.discover_master(self.endpoint.service)
        finally:
            for client in sentinels.sentinels:
                await client.aclose()
        return host, port
