"""Where the code of a process task is: told by the worker, found by the child, which imports it anew."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from skep.errors import SkepError
from skep.handler import Handler, Registry, registries
from skep.worker.executors.wire import Source

MAIN = "__main__"
MAIN_OF_CHILD = "__mp_main__"
"""The name under which a child runs the main program, as those of multiprocessing do."""


class NotImportable(SkepError):
    """A function is to run in a child process, which cannot import it. The text says why, and what to do."""


def place_of(function: Any) -> tuple[str, str]:
    """The module and the name within it. `NotImportable` where a child would not find it."""
    module: str = getattr(function, "__module__", None) or type(function).__module__
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    if "<locals>" in name:
        raise NotImportable(
            f"{name!r} of {module} is defined inside a function, where a child process cannot find it: "
            "move it to the top level of its module, or run it with executor='thread'"
        )
    if module == MAIN and main_program() is None:
        raise NotImportable(
            f"{name!r} is defined in an interactive session, which a child process cannot import: "
            "move it into a module (a .py file) and import that, or run it with executor='thread'"
        )
    return module, name


def source_of(registry: Registry, handler: Handler) -> Source:
    """How a child is told of a handler."""
    module, name = place_of(handler.declared)
    return Source(registry.name, handler.name, module, name)


def main_program() -> str | None:
    """What was started: `module:name`, `file:path`, or nothing that could be run again."""
    main: Any = sys.modules[MAIN]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return f"module:{spec.name}"
    file = getattr(main, "__file__", None)
    return f"file:{Path(file).resolve()}" if file and Path(file).is_file() else None


importing: ContextVar[bool] = ContextVar("skep_importing", default=False)
"""Whether a child process imports the module of a handler."""


def refuse_while_importing() -> None:
    """No worker begins since a child of another one imports its module: each child would have children again."""
    if importing.get():
        raise NotImportable(
            "a child process has imported the module of its task, which starts a worker when it is imported: "
            'start it behind `if __name__ == "__main__":`'
        )


@cache
def load_main(program: str) -> dict[str, Any]:
    """Runs the main program under the name that it has in children; what it begins behind
    `if __name__ == "__main__"` is left out.
    """
    kind, _, where = program.partition(":")
    run: Callable[..., dict[str, Any]] = runpy.run_module if kind == "module" else runpy.run_path
    return run(where, run_name=MAIN_OF_CHILD)


def load_function(place: tuple[str, str], main: str | None) -> Any:
    """A function by its place."""
    module, name = place
    first, *rest = name.split(".")
    if module == MAIN and main is not None:
        found: Any = load_main(main)[first]
    else:
        found = getattr(importlib.import_module(module), first)
    for each in rest:
        found = getattr(found, each)
    return found


def load_handler(source: Source, main: str | None) -> tuple[Registry, Handler]:
    """The handler and where it is registered, once its module is imported."""
    importing.set(True)
    try:
        if source.module == MAIN and main is not None:
            load_main(main)
        else:
            importlib.import_module(source.module)
    finally:
        importing.set(False)
    wanted = (MAIN_OF_CHILD if source.module == MAIN else source.module, source.name)
    for registry in list(registries):
        handler = registry.find(source.task) if registry.name == source.registry else None
        if handler is not None and place_of(handler.declared) == wanted:
            return registry, handler
    raise NotImportable(
        f"a child process has imported {source.module!r}, and that did not declare the task {source.task!r} for "
        f"{source.name!r}: declare it where that module is imported, or name the module that does with --import"
    )
