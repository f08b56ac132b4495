"""Where the jobs of `embedded://` lie: one folder per project, where all that runs in it meets."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from platformdirs import user_data_path

from skep.errors import InvalidOption

MARKERS = ("pyproject.toml", ".git")
"""What a project's own folder has in it."""

WANTED = (
    "embedded:// or embedded:///folder, an absolute path with three slashes;"
    " in it `?`, `#` and `%` are written %3F, %23 and %25"
)


def folder_of(url: str, module_file: str | None = None) -> Path:
    """The data folder that an `embedded://` url names, or that it means here."""
    parts = urlsplit(url)
    named = os.fsdecode(unquote_to_bytes(parts.path))
    if parts.scheme != "embedded" or parts.netloc or parts.query or parts.fragment or "\0" in named:
        raise InvalidOption("url", url, WANTED)
    if not named:
        return place(module_file)
    folder = Path(named).resolve()
    if folder == Path(folder.root):
        raise InvalidOption("url", url, WANTED)
    return folder


def url_of(folder: Path) -> str:
    """The url that names this data folder, in this process and in all others."""
    return "embedded://" + quote_from_bytes(os.fsencode(folder))


def place(module_file: str | None = None) -> Path:
    """The data folder of `embedded://`: that of the project of `module_file`, else of the main script.

    A script in the folder of an interpreter or an environment (uvicorn, pytest, skep, Jupyter) is a tool and
    says nothing: then the working directory does. What belongs to no project shares one folder per user.
    """
    main = module_file or getattr(sys.modules.get("__main__"), "__file__", None)
    script = Path(main) if main else None
    project = project_of(script, cwd=_working_directory(), environments=environments())
    return data_folder(project, user_data_path("skep", appauthor=False))


def project_of(script: Path | None, *, cwd: Path, environments: Iterable[Path]) -> Path | None:
    """The nearest folder with one of `MARKERS` above the script, or above `cwd` where that is a tool."""
    begin = cwd if script is None or _is_a_tool(script, environments) else script.resolve().parent
    return next((folder for folder in (begin, *begin.parents) if _is_a_project(folder)), None)


def data_folder(project: Path | None, home: Path) -> Path:
    """The folder of a project's jobs below the user's data folder. Projects of one name have one each."""
    if project is None:
        return home / "embedded" / "user"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", project.name)[:40]
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:10]
    return home / "embedded" / f"{name}-{digest}"


@functools.cache
def environments() -> set[Path]:
    """Folders of this interpreter, of the environment it runs in, and of what the user installed for it."""
    kinds = ("scripts", "stdlib", "platstdlib", "purelib", "platlib")
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    found = {Path(sysconfig.get_path(kind, scheme)) for scheme in schemes for kind in kinds}
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)}
    found |= {prefix / part for prefix in prefixes for part in ("bin", "lib", "lib64")}
    # An environment has a folder of its own, unless it is the project itself. /usr/src/app is in none.
    if sys.prefix != sys.base_prefix and not _is_a_project(Path(sys.prefix)):
        found.add(Path(sys.prefix))
    return found


def _is_a_tool(script: Path, environments: Iterable[Path]) -> bool:
    """Whether the script lies in one of the environments, also by way of a link."""
    names = {script, script.resolve()}
    if any(part in {"site-packages", "dist-packages"} for name in names for part in name.parts):
        return True
    folders = {folder for given in environments for folder in (given, given.resolve())}
    return any(name.is_relative_to(folder) for name in names for folder in folders)


def _is_a_project(folder: Path) -> bool:
    return any((folder / marker).exists() for marker in MARKERS)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed under us: it belongs to no project
        return Path("/")
