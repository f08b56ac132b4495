"""Adds that came in the same turn of a loop go in one trip; each caller hears of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skep import adding, lifecycle, views
from skep.adding import AddedOne, by_size
from skep.core.ids import new_ids
from skep.core.job import JobRecord
from skep.core.keys import Keys
from skep.drafts import Template
from skep.enrolment import Enrolment
from skep.errors import JobExists, QueueFull, ServerError, ServerUnavailable
from skep.store.aio import AsyncStore


class _Waiting(NamedTuple):
    template: Template
    data: bytes
    promise: asyncio.Future[AddedOne]


class Coalescer:
    """Collects adds until the turn is over. A trip is its own: who is cancelled only stops listening."""

    def __init__(self, store: AsyncStore, keys: Keys, enrolment: Enrolment) -> None:
        self._store = store
        self._enrolment = enrolment
        self._keys = keys
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Waiting] = []
        self._trips: set[asyncio.Task[None]] = set()

    def add(self, template: Template, data: bytes) -> asyncio.Future[AddedOne]:
        """One job, in the trip that leaves when this turn of the loop is over."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._waiting, self._trips = loop, [], set()
        promise: asyncio.Future[AddedOne] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._leave, loop)
        self._waiting.append(_Waiting(template, data, promise))
        return promise

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        trip = loop.create_task(self._send_all(waiting))
        self._trips.add(trip)
        trip.add_done_callback(self._trips.discard)

    async def _send_all(self, waiting: list[_Waiting]) -> None:
        if not self._enrolment.is_over:
            try:
                await self._store.run(self._enrolment.before_add())
            except Exception as error:  # noqa: BLE001 - whatever it is, every caller hears of it
                _refuse(waiting, error)
                return
        # One trip after another: who adds many at once finds them in his order.
        for first in range(0, len(waiting), adding.MOST_IN_A_TRIP):
            for part in by_size(waiting[first : first + adding.MOST_IN_A_TRIP], lambda each: len(each.data)):
                try:
                    await self._send(part)
                except Exception as error:  # noqa: BLE001 - whatever it is, every caller hears of it
                    _refuse(part, error)

    async def _send(self, part: list[_Waiting]) -> None:
        try:
            answered = await self._trip(part)
        except (QueueFull, JobExists):
            # The trip was judged whole, and nothing of it was added: now each is judged by itself.
            for each in part:
                await self._send_one(each)
            return
        for each, added in zip(part, answered, strict=True):
            if not each.promise.done():
                each.promise.set_result(added)

    async def _send_one(self, each: _Waiting) -> None:
        if each.promise.done():
            return
        try:
            added = await self._store.run(adding.add(self._keys, each.template, each.data))
        except Exception as error:  # noqa: BLE001 - whatever it is, its caller hears of it
            _refuse([each], error)
        else:
            if not each.promise.done():
                each.promise.set_result(added)

    async def _trip(self, part: Sequence[_Waiting]) -> list[AddedOne]:
        template = part[0].template
        if template.is_plain and all(each.template is template for each in part):
            ids = new_ids(len(part))
            pairs = [(id, each.data) for id, each in zip(ids, part, strict=True)]
            added = [AddedOne(id, template, data, "added", 0) for id, data in pairs]
            try:
                await self._store.send(lifecycle.add(self._keys, template.like, pairs))
            except ServerUnavailable as error:
                raise error.told_as(lambda _: added) from error
            return added
        drafts = [each.template.draft(each.data) for each in part]
        try:
            answers = await self._store.send(lifecycle.upsert(self._keys, drafts))
        except ServerUnavailable as error:
            raise error.told_as(lambda answers: _told(part, drafts, answers, {})) from error
        met = [draft.id for draft, answer in zip(drafts, answers, strict=True) if answer.outcome in adding.MET]
        records = await self._look(met)
        return _told(part, drafts, answers, records)

    async def _look(self, ids: list[str]) -> dict[str, Any]:
        try:
            found = await self._store.send(views.look(self._keys, ids)) if ids else []
        except ServerError:
            return {}  # the adds are done all the same
        return dict(zip(ids, found, strict=True))


def _told(
    part: Sequence[_Waiting],
    drafts: Sequence[lifecycle.Draft],
    answers: Sequence[lifecycle.Added],
    records: Mapping[str, JobRecord | None],
) -> list[AddedOne]:
    return [
        AddedOne(draft.id, each.template, each.data, answer.outcome, answer.life, records.get(draft.id))
        for each, draft, answer in zip(part, drafts, answers, strict=True)
    ]


def _refuse(part: Sequence[_Waiting], error: Exception) -> None:
    for place, each in enumerate(part):
        if not each.promise.done():
            each.promise.set_exception(_own(error, place))


def _own(error: Exception, place: int) -> Exception:
    """The same error, for one of its callers: what he may ask for is the answer to his own add."""
    return error.told_as(lambda answers: answers[place]) if isinstance(error, ServerUnavailable) else error
