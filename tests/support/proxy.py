"""A proxy between a client and a server that loses, holds back and repeats requests and replies, as a test says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import hiredis

from skep.core.call import Script
from skep.store.transport import pack

Action = Literal["pass", "lose request", "lose reply", "hold request", "hang", "repeat", "delay reply"]
"""What becomes of a call. `lose` and `hold` close the client's connection, `hang` leaves it without a reply,
`hold request` keeps the request until `deliver()`, `delay reply` the reply until `release()`."""

NOTHING = object()


class Proxy:
    """Listens on `path` and talks to the server at `upstream`. Actions are for calls (EVALSHA), in their order."""

    def __init__(self, path: Path, upstream: str) -> None:
        self.path = str(path)
        self.url = f"unix://{quote(self.path)}"
        self.calls: list[list[bytes]] = []
        self.words: list[bytes] = []  # the first of every request
        self.connections = 0
        self._upstream = upstream
        self._actions: deque[Action] = deque()
        self._held: list[bytes] = []
        self._released = 0
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self.up()

    def then(self, *actions: Action) -> None:
        """What becomes of the next calls."""
        self._actions.extend(actions)

    def up(self) -> None:
        """Takes connections (again)."""
        Path(self.path).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._start(self._accept, self._listener)

    def down(self) -> None:
        """Closes all connections and takes no more, as if the server were gone."""
        if self._listener is not None:
            _end(self._listener)
            self._listener = None
        Path(self.path).unlink(missing_ok=True)
        self.drop()

    def drop(self) -> None:
        """Closes all connections, and takes new ones."""
        with self._changed:
            for one in tuple(self._open):
                _end(one)
        self.release()

    def release(self) -> None:
        """Lets replies through that were delayed."""
        with self._changed:
            self._released += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Ends it and all its threads."""
        self.down()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def sent(self, script: Script) -> int:
        """How many calls of a script have come in."""
        return sum(call[1] == script.sha.encode() for call in self.calls)

    def wait_for_calls(self, number: int) -> None:
        """Returns when so many calls have come in."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= number, 10)

    def wait_for(self, word: bytes) -> None:
        """Returns when a request with this first word has come in."""
        with self._changed:
            assert self._changed.wait_for(lambda: word in self.words, 10)

    def deliver(self) -> list[Any]:
        """The replies to all requests that were held back, which arrive now."""
        with self._changed:
            held, self._held = self._held, []
        replies: list[Any] = []
        for packed in held:
            with contextlib.closing(_dial(self._upstream)) as server:
                replies.append(_parsed(_ask(server, packed)))
        return replies

    def _start(self, work: Any, *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._changed:
                self._open.add(client)
                self.connections += 1
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        reader = hiredis.Reader(notEnoughData=NOTHING)
        server: socket.socket | None = None
        try:
            server = _dial(self._upstream)
            with self._changed:
                self._open.add(server)
            while data := client.recv(65536):
                reader.feed(data)
                while (words := reader.gets()) is not NOTHING:
                    if not self._pass_on(client, server, words):
                        return
        except OSError:
            pass  # one of the two has gone: so does the other
        finally:
            for one in (client, server):
                if one is not None:
                    with self._changed:
                        self._open.discard(one)
                    _end(one)

    def _pass_on(self, client: socket.socket, server: socket.socket, words: list[bytes]) -> bool:
        """Does with a request what was said; whether the connection goes on."""
        action, released = self._action(words)
        packed = pack(tuple(words))
        if action == "hold request":
            self._held.append(packed)
        if action in {"lose request", "hold request"}:
            return False
        if action == "hang":
            return True
        raw = _ask(server, packed)
        if action == "repeat":
            raw = _ask(server, packed)
        if action == "lose reply":
            return False
        if action == "delay reply":
            self._wait_for_release(released)
        client.sendall(raw)
        return True

    def _wait_for_release(self, before: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._released > before, 10)

    def _action(self, words: list[bytes]) -> tuple[Action, int]:
        with self._changed:
            self.words.append(words[0])
            if words[0] == b"EVALSHA":
                self.calls.append(words)
            self._changed.notify_all()
            if words[0] != b"EVALSHA":
                return "pass", 0
            return (self._actions.popleft() if self._actions else "pass"), self._released


def _dial(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


def _ask(server: socket.socket, packed: bytes) -> bytes:
    """The raw reply to one request."""
    server.sendall(packed)
    raw = b""
    while _parsed(raw) is NOTHING:
        data = server.recv(65536)
        if not data:
            raise ConnectionResetError
        raw += data
    return raw


def _parsed(raw: bytes) -> Any:
    reader = hiredis.Reader(notEnoughData=NOTHING)
    reader.feed(raw)
    return reader.gets()


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
