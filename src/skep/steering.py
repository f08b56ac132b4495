"""What a queue does to jobs that are there, by id, by ids, or to all that match."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Unpack, overload

from skep import acts, lifecycle
from skep.acts import Act, Ids, Which
from skep.base import BaseQueue
from skep.core.options import ChangeOptions
from skep.core.terms import Duration
from skep.core.unset import UNSET
from skep.link import Link


class Steering(BaseQueue):
    """Each says what it did: of one id True or False, of several those that changed, of all that match how many."""

    _TWIN = "await queue.aio.{}(...)"

    @property
    def _link(self) -> Link:
        return self._blocking

    @overload
    def cancel(
        self, ids: str, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ...
    ) -> bool: ...
    @overload
    def cancel(
        self, ids: Ids, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ...
    ) -> list[str]: ...
    @overload
    def cancel(
        self, *, reason: str = ..., keep: bool | Duration | None = ..., active: bool = ..., **which: Unpack[Which]
    ) -> int: ...
    def cancel(
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
        return self._steer(act, ids, which)

    @overload
    def hold(self, ids: str, *, reason: str = ...) -> bool: ...
    @overload
    def hold(self, ids: Ids, *, reason: str = ...) -> list[str]: ...
    @overload
    def hold(self, *, reason: str = ..., **which: Unpack[Which]) -> int: ...
    def hold(self, ids: str | Iterable[str] | None = None, *, reason: str = "by hand", **which: Unpack[Which]) -> Any:
        """Sets jobs that wait aside, until they are released."""
        return self._steer(partial(lifecycle.hold, self.keys, reason=reason), ids, which)

    @overload
    def release(self, ids: str) -> bool: ...
    @overload
    def release(self, ids: Ids) -> list[str]: ...
    @overload
    def release(self, **which: Unpack[Which]) -> int: ...
    def release(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Lets jobs that are held go on."""
        return self._steer(partial(lifecycle.release, self.keys), ids, which)

    @overload
    def promote(self, ids: str) -> bool: ...
    @overload
    def promote(self, ids: Ids) -> list[str]: ...
    @overload
    def promote(self, **which: Unpack[Which]) -> int: ...
    def promote(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Lets jobs that wait for their time run now."""
        return self._steer(partial(lifecycle.promote, self.keys), ids, which)

    @overload
    def retry(self, ids: str) -> bool: ...
    @overload
    def retry(self, ids: Ids) -> list[str]: ...
    @overload
    def retry(self, **which: Unpack[Which]) -> int: ...
    def retry(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Runs finished jobs again, each as a new life."""
        return self._steer(partial(lifecycle.revive, self.keys), ids, which)

    @overload
    def remove(self, ids: str) -> bool: ...
    @overload
    def remove(self, ids: Ids) -> list[str]: ...
    @overload
    def remove(self, **which: Unpack[Which]) -> int: ...
    def remove(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Takes jobs away, unless they run."""
        return self._steer(partial(lifecycle.remove, self.keys), ids, which)

    @overload
    def redact(self, ids: str) -> bool: ...
    @overload
    def redact(self, ids: Ids) -> list[str]: ...
    @overload
    def redact(self, **which: Unpack[Which]) -> int: ...
    def redact(self, ids: str | Iterable[str] | None = None, **which: Unpack[Which]) -> Any:
        """Blanks data, result, error and logs of finished jobs."""
        return self._steer(partial(lifecycle.redact, self.keys), ids, which)

    @overload
    def update(self, ids: str, *, data: Any = ..., **options: Unpack[ChangeOptions]) -> bool: ...
    @overload
    def update(self, ids: Ids, *, data: Any = ..., **options: Unpack[ChangeOptions]) -> list[str]: ...
    @overload
    def update(
        self,
        *,
        data: Any = ...,
        status: str = ...,
        older_than: Duration = ...,
        **options: Unpack[ChangeOptions],
    ) -> int: ...
    def update(self, ids: str | Iterable[str] | None = None, *, data: Any = UNSET, **options: Any) -> Any:
        """Changes what is named of jobs. Without ids, `status name task older_than` say of which."""
        return self._link.run(acts.update_many(self.keys, ids, data, options))

    def clean(self, status: str, older_than: Duration = 0) -> int:
        """Removes finished jobs of a status that ended so long ago."""
        return self._link.run(acts.clean(self.keys, status, older_than))

    def empty(self) -> int:
        """Removes all jobs that wait, whatever for; those that run and those that have finished stay."""
        return self._link.run(acts.empty(self.keys))

    def drop(self) -> int:
        """Removes all jobs; those that run are told to stop. Gives how many had not finished."""
        return self._link.send(lifecycle.drop(self.keys))

    def _steer(self, act: Act, ids: str | Iterable[str] | None, which: Which) -> Any:
        return self._link.run(acts.steer(self.keys, act, ids, which))
