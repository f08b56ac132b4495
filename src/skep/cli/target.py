"""What `module:attribute` names on a command line: a queue, a worker, or a list of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skep.errors import SkepError

EXAMPLE = "name it as module:attribute, such as app:mail for `mail = Queue(...)` in app.py"


class BadTarget(SkepError):
    """A target that cannot be loaded. The text says which, and why."""

    def __init__(self, target: str, why: str) -> None:
        super().__init__(f"{target!r}: {why}")
        self.target = target


def add_working_directory() -> None:
    """Modules in the working directory can be imported, as under `python -m`."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def load(target: str) -> list[Any]:
    """The queues and workers that it names."""
    module_name, colon, path = target.partition(":")
    if not module_name or not colon or not path:
        raise BadTarget(target, EXAMPLE)
    found: Any = _module(target, module_name)
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise BadTarget(target, f"there is no {name!r} in {module_name!r}; {EXAMPLE}") from None
    served = list(found) if isinstance(found, Iterable) else [found]
    for each in served:
        if not (hasattr(each, "registry") or hasattr(each, "queues")):
            raise BadTarget(target, f"{each!r} is no queue and no worker; {EXAMPLE}")
    return served


def _module(target: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A module that the target's own code misses is its own affair: its traceback tells more.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise BadTarget(target, f"there is no module {error.name!r} here ({Path.cwd()}); {EXAMPLE}") from None
