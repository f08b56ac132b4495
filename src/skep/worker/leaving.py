"""How a registration ends: what it still holds waits again, in as many slices as that takes."""

from __future__ import annotations

from skep import lifecycle
from skep.core.call import Flow
from skep.core.keys import Keys

LAST_SLICES = 200
"""So much upkeep a worker that goes does at most for what it leaves behind: others go on with the rest."""


def leave(keys: Keys, worker: str, *, died: bool = False) -> Flow[None]:
    """Its runs are returned, or stalled where its process died."""
    more = yield lifecycle.leave(keys, worker, died=died)
    for _ in range(LAST_SLICES):
        if not more:
            return
        upkept = yield lifecycle.upkeep(keys)
        # The next due time of a cron series is told by a worker: it goes on from here.
        more = upkept.more and not upkept.wanted
