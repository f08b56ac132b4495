"""What an `AsyncQueue` does to jobs that are there, by id, by ids, or to all that match."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Unpack, overload

from skep import acts, lifecycle
from skep.acts import Act, Ids, Which
from skep.alink import AsyncLink
from skep.base import BaseQueue
from skep.core.options import ChangeOptions
from skep.core.terms import Duration
from skep.core.unset import UNSET


class AsyncSteering(BaseQueue):
    """Each says what it did: of one id True or False, of several those that changed, of all that match how many."""

    @property
    def _link(self) -> AsyncLink:
        return self._blocking.aio

    @overload
    async def cancel(
        self, ids: str, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ...
    ) -> bool: ...
    @overload
    async def cancel(
        self, ids: Ids, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ...
    ) -> list[str]: ...
    @overload
    async def cancel(
        self, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ..., **which: Unpack[Which]
    ) -> int: ...
    async def cancel(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        reason: str = "on request",
        keep: bool | Duration | None = None,
        active: bool = True,
        **which: Unpack[Which],
    ) -> Any:
        """Cancels jobs, or asks runs to stop. `keep`: how long they stay then; `active=False` leaves runs alone."""
        act = partial(lifecycle.cancel, self.keys, reason=reason, keep=acts.kept(keep), active=active)
        return await self._steer(act, ids, which)

    @overload
    async def hold(self, ids: str, *, reason: str = ...) -> bool: ...
    @overload
    async def hold(self, ids: Ids, *, reason: str = ...) -> list[str]: ...
    @overload
    async def hold(self, *, reason: str = ..., **which: Unpack[Which]) -> int: ...
    async def hold(
        self, ids: str | Iterable[str] | None = None, *, reason: str = "by hand", **which: Unpack[Which]
    ) -> Any:
        """Sets jobs that wait aside, until they are released."""
        return await self._steer(partial(lifecycle.hold, self.keys, reason=reason), ids, which)

    @overload
    async def release(self, ids: str) -> bool: ...
    @overload
    async def release(self, ids: Ids) -> list[str]: ...
    @overload
    async def release(self, **which: Unpack[Which]) -> int: ...
    async def release(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Lets jobs that are held go on."""
        return await self._steer(partial(lifecycle.release, self.keys), ids, which)

    @overload
    async def promote(self, ids: str) -> bool: ...
    @overload
    async def promote(self, ids: Ids) -> list[str]: ...
    @overload
    async def promote(self, **which: Unpack[Which]) -> int: ...
    async def promote(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Lets jobs that wait for their time run now."""
        return await self._steer(partial(lifecycle.promote, self.keys), ids, which)

    @overload
    async def retry(self, ids: str) -> bool: ...
    @overload
    async def retry(self, ids: Ids) -> list[str]: ...
    @overload
    async def retry(self, **which: Unpack[Which]) -> int: ...
    async def retry(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Runs finished jobs again, each as a new life."""
        return await self._steer(partial(lifecycle.revive, self.keys), ids, which)

    @overload
    async def remove(self, ids: str) -> bool: ...
    @overload
    async def remove(self, ids: Ids) -> list[str]: ...
    @overload
    async def remove(self, **which: Unpack[Which]) -> int: ...
    async def remove(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Takes jobs away, unless they run."""
        return await self._steer(partial(lifecycle.remove, self.keys), ids, which)

    @overload
    async def redact(self, ids: str) -> bool: ...
    @overload
    async def redact(self, ids: Ids) -> list[str]: ...
    @overload
    async def redact(self, **which: Unpack[Which]) -> int: ...
    async def redact(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Blanks data, result, error and logs of finished jobs."""
        return await self._steer(partial(lifecycle.redact, self.keys), ids, which)

    @overload
    async def update(self, ids: str, *, data: Any = ..., **options: Unpack[ChangeOptions]) -> bool: ...
    @overload
    async def update(self, ids: Ids, *, data: Any = ..., **options: Unpack[ChangeOptions]) -> list[str]: ...
    @overload
    async def update(
        self,
        *,
        data: Any = ...,
        status: str = ...,
        older_than: Duration = ...,
        **options: Unpack[ChangeOptions],
    ) -> int: ...
    async def update(self, ids: str | Iterable[str] | None = None, *, data: Any = UNSET, **options: Any) -> Any:
        """Changes what is named of jobs. Without ids, `status name task older_than` say of which."""
        return await self._link.run(acts.update_many(self.keys, ids, data, options))

    async def clean(self, status: str, older_than: Duration = 0) -> int:
        """Removes finished jobs of a status that ended so long ago."""
        return await self._link.run(acts.clean(self.keys, status, older_than))

    async def empty(self) -> int:
        """Removes all jobs that wait, whatever for; those that run and those that have finished stay."""
        return await self._link.run(acts.empty(self.keys))

    async def drop(self) -> int:
        """Removes all jobs; those that run are told to stop. Gives how many had not finished."""
        return await self._link.send(lifecycle.drop(self.keys))

    async def _steer(self, act: Act, ids: str | Iterable[str] | None, which: Which) -> Any:
        return await self._link.run(acts.steer(self.keys, act, ids, which))
