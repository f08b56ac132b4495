"""How often a process that does nothing but run jobs looks for garbage in cycles."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 10_000
"""New objects between two looks at the young ones. By default it is 700, which a batch of jobs in flight is already:
each look then walks over jobs that all still run, for a tenth of a worker's time.
"""


@contextmanager
def rare_looks() -> Generator[None]:
    """Less often than by default, where nobody has said how often. What makes no cycles is freed at once as ever."""
    young, old, oldest = gc.get_threshold()
    if not 0 < young < OBJECTS:
        yield
        return
    gc.set_threshold(OBJECTS, old, oldest)
    try:
        yield
    finally:
        gc.set_threshold(young, old, oldest)
