"""What a client does before its first change of a queue: it names it among the server's, and warns of a lonely add."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Any, TypeVar

from skep import views
from skep.core.call import Call, Flow
from skep.core.keys import Keys
from skep.errors import ServerError, ServerUnavailable, SkepError
from skep.store.connect import Connection

T = TypeVar("T")

log = logging.getLogger("skep")

ADDS = frozenset(("add", "upsert"))

_warned_of: set[str] = set()


class Enrolment:
    """What a client has still to do before its first change, and before its first add."""

    def __init__(self, keys: Keys, connection: Connection) -> None:
        self._keys = keys
        self._connection = connection
        self._is_named = False
        self._is_served = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done."""
        return self._is_named and self._is_served

    def around(self, flow: Flow[T]) -> Flow[T]:
        """The flow, with what is to be done before its calls."""
        with closing(flow):
            try:
                call = next(flow)
                while True:
                    yield from self._before(call)
                    try:
                        answer = yield call
                    except SkepError as error:
                        call = flow.throw(error)
                    else:
                        call = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result

    def before_add(self) -> Flow[None]:
        """What is to be done before an add that goes its own way."""
        yield from self._name()
        yield from self._look_for_workers()

    def _before(self, call: Call[Any]) -> Flow[None]:
        if call.laned:
            yield from self._name()
        if call.script.name in ADDS:
            yield from self._look_for_workers()

    def _name(self) -> Flow[None]:
        if self._is_named:
            return
        try:
            yield views.enrol(self._keys)
        except ServerUnavailable as error:
            raise ServerUnavailable(str(error)) from error  # what it goes before was not sent
        except ServerError:
            pass  # a full server, or a user who may not: the queue can be used all the same
        self._is_named = True

    def _look_for_workers(self) -> Flow[None]:
        if self._is_served:
            return
        endpoint = self._connection.endpoint()
        if endpoint.kind == "embedded" and not (yield views.served(self._keys)):
            self._warn(endpoint.safe_url)
        self._is_served = True

    def _warn(self, where: str) -> None:
        if self._keys.base not in _warned_of:
            _warned_of.add(self._keys.base)
            log.warning(
                "queue %r at %s has never had a worker: one that runs elsewhere, as in another container,"
                " has an embedded server of its own; set SKEP_URL to a server that both reach",
                self._keys.name,
                where,
            )
