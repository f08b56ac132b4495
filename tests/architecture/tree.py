"""What the tests of this folder look at: the files of the repository, and the imports of the package."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
SCRIPTS = SRC / "skep" / "scripts"


@dataclass(frozen=True)
class Import:
    """One import: who imports what, and whether only when a function is called."""

    importer: str
    target: str
    line: int
    lazily: bool

    @property
    def is_ours(self) -> bool:
        return self.target.split(".")[0] in ("skep", "pyspark_skep")

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: imports {self.target}"


def tracked_files() -> list[Path]:
    """The files that are, or would be, in a commit; outside a checkout all but what tools have made."""
    found = _listed_by_git()
    if found is None:
        made = {"build", "dist", "node_modules", "__pycache__"}
        found = [
            path
            for path in ROOT.rglob("*")
            if not made.intersection(path.relative_to(ROOT).parts) and not _is_hidden(path)
        ]
    return sorted(path for path in found if path.is_file())


def _listed_by_git() -> list[Path] | None:
    if shutil.which("git") is None:
        return None
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else None


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part != ".ci" for part in path.relative_to(ROOT).parts)


@cache
def modules() -> dict[str, Path]:
    """The modules of the source tree by their dotted names."""
    return {_name_of(path): path for path in sorted(SRC.rglob("*.py"))}


def _name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> list[Import]:
    """Every import in the source tree, also those for type checkers only and those within functions."""
    return [found for name, path in modules().items() for found in _imports_of(name, ast.parse(path.read_bytes()))]


def _imports_of(importer: str, tree: ast.Module) -> Iterator[Import]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = {id(inner) for function in functions for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [_target(importer, node, alias.name) for alias in node.names]
        else:
            continue
        for target in dict.fromkeys(targets):
            yield Import(importer, target, node.lineno, lazily=id(node) in within)


def _target(importer: str, node: ast.ImportFrom, name: str) -> str:
    """The module that is meant: `from skep import scripts` means skep.scripts, if that is a module."""
    base = node.module or ""
    if node.level:
        depth = node.level - (modules()[importer].name == "__init__.py")
        package = importer.split(".")[: len(importer.split(".")) - depth]
        base = ".".join([*package, base] if base else package)
    inner = f"{base}.{name}"
    return inner if inner in modules() else base
