from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import redis

import skep.errors
from skep.embedded import folder_of, place, url_of
from skep.embedded.place import data_folder, environments, project_of
from skep.errors import InvalidOption
from tests.embedded.people import a_plain_environment

TELL = "from skep.embedded import place; print(place(), end='')"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package, in a folder that belongs to none."""
    found = tmp_path / "bees"
    (found / "app" / "jobs").mkdir(parents=True)
    (found / "pyproject.toml").touch()
    return found


@pytest.mark.parametrize("marker", ["pyproject.toml", ".git"])
def test_the_nearest_marker_above_the_script_is_its_project(tmp_path: Path, marker: str) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / marker).touch()

    found = project_of(inner / "deep" / "main.py", cwd=Path("/"), environments=[])

    assert found == inner


def test_a_script_says_more_than_the_working_directory(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").mkdir()

    found = project_of(project / "app" / "main.py", cwd=tmp_path / "other", environments=[])

    assert found == project


def test_a_script_of_no_project_belongs_to_the_user_wherever_it_is_run(project: Path, tmp_path: Path) -> None:
    found = project_of(tmp_path / "scratch.py", cwd=project, environments=[])

    assert found is None


def test_a_program_without_a_script_belongs_to_the_working_directory(project: Path) -> None:
    found = project_of(None, cwd=project / "app", environments=[])

    assert found == project


@pytest.mark.parametrize("tool", ["bin/uvicorn", "lib/python3.11/site-packages/ipykernel_launcher.py", "bin/skep"])
def test_a_script_of_an_environment_in_the_project_leaves_it_to_the_working_directory(
    project: Path, tmp_path: Path, tool: str
) -> None:
    environment = project / ".venv"

    here = project_of(environment / tool, cwd=project / "app", environments=[environment])
    elsewhere = project_of(environment / tool, cwd=tmp_path, environments=[environment])

    assert (here, elsewhere) == (project, None)


def test_a_link_to_a_script_counts_as_the_script(project: Path, tmp_path: Path) -> None:
    (project / "main.py").touch()
    (tmp_path / "link.py").symlink_to(project / "main.py")

    found = project_of(tmp_path / "link.py", cwd=tmp_path, environments=[])

    assert found == project


def test_a_link_to_a_tool_of_another_environment_counts_as_a_tool(project: Path, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "uvicorn" / "bin" / "uvicorn"
    tool.parent.mkdir(parents=True)
    tool.touch()
    (project / "run").symlink_to(tool)

    found = project_of(project / "run", cwd=project, environments=[tmp_path / "tools" / "uvicorn"])

    assert found == project


def test_libraries_are_tools_also_where_no_environment_is_known(project: Path) -> None:
    script = project / "vendor" / "site-packages" / "tool" / "__main__.py"

    found = project_of(script, cwd=Path("/"), environments=[])

    assert found is None


def test_this_interpreter_and_its_environment_are_known(tmp_path: Path) -> None:
    tools = [
        Path(sysconfig.get_path("scripts"), "pytest"),
        Path(redis.__file__),
        Path(subprocess.__file__),
        Path(sys.base_prefix, "bin", "idle3"),
    ]

    found = [project_of(tool, cwd=tmp_path, environments=environments()) for tool in tools]

    assert found == [None] * 4
    assert not any(Path("/usr/src/app").is_relative_to(folder) for folder in environments())


def test_the_folder_is_named_after_the_project_and_differs_for_each(tmp_path: Path) -> None:
    one = data_folder(Path("/work/bees"), tmp_path)
    other = data_folder(Path("/home/bees"), tmp_path)
    odd = data_folder(Path("/work/a/../b c\n" + "d" * 300), tmp_path)
    none = data_folder(None, tmp_path)

    assert one.parent == other.parent == odd.parent == none.parent == tmp_path / "embedded"
    assert one.name.startswith("bees-")
    assert one != other
    assert len(odd.name) < 60
    assert none.name == "user"


@pytest.mark.parametrize("name", ["/a", "/a b/%41/#/?", "/蜂", os.fsdecode(b"/\xff")])
def test_a_url_names_a_folder_and_a_folder_its_url(name: str) -> None:
    url = url_of(Path(name))

    assert folder_of(url) == Path(name)


@pytest.mark.parametrize(
    "url",
    ["embedded://host/a", "embedded://a", "embedded:///a?b=1", "embedded:///a#b", "embedded:///", "embedded:////",
     "embedded:///a%00b", "embedded:///a/..", "unix:///a", "/a", "embedded://../a"],
)  # fmt: skip
def test_a_url_that_names_no_folder_is_refused_with_one_that_does(url: str) -> None:
    with pytest.raises(InvalidOption, match="embedded:///folder"):
        folder_of(url)


def told(command: list[str | Path], cwd: Path, home: Path) -> str:
    """Where a program of this kind finds its jobs."""
    libraries = [str(Path(module.__file__ or "").parent.parent) for module in (redis, skep.errors)]
    environment = a_plain_environment(XDG_DATA_HOME=str(home), PYTHONPATH=os.pathsep.join(libraries))
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout).name.rpartition("-")[0] or Path(done.stdout).name


def test_a_script_and_a_module_of_a_project_meet_from_any_working_directory(project: Path, tmp_path: Path) -> None:
    (project / "main.py").write_text(TELL)
    (project / "app" / "jobs" / "__main__.py").write_text(TELL)
    (project / "app" / "worker.py").touch()

    script = told([sys.executable, project / "main.py"], tmp_path, tmp_path)
    module = told([sys.executable, "-m", "app.jobs"], project, tmp_path)
    command = told([sys.executable, "-c", TELL], project / "app", tmp_path)
    worker = told([sys.executable, "-c", TELL.replace("()", "('bees/app/worker.py')")], tmp_path, tmp_path)
    outside = told([sys.executable, "-c", TELL], tmp_path, tmp_path)

    assert (script, module, command, worker, outside) == ("bees", "bees", "bees", "bees", "user")


def test_tools_of_an_environment_in_the_project_meet_in_the_project_they_are_started_in(
    project: Path, tmp_path: Path
) -> None:
    environment = project / ".venv"
    venv.create(environment)
    python = environment / "bin" / "python"
    tool = environment / "bin" / "webserver"
    tool.write_text(f"#!{python}\n{TELL}\n")
    tool.chmod(0o755)
    kernel = next(environment.glob("lib/python*/site-packages")) / "kernel_launcher.py"
    kernel.write_text(TELL)
    other = tmp_path / "wasps"
    (other / ".git").mkdir(parents=True)

    begun = {cwd.name: told([tool], cwd, tmp_path) for cwd in (project / "app", other, tmp_path)}
    modules = {cwd.name: told([python, "-m", "kernel_launcher"], cwd, tmp_path) for cwd in (project, other)}

    assert begun == {"app": "bees", "wasps": "wasps", tmp_path.name: "user"}
    assert modules == {"bees": "bees", "wasps": "wasps"}


def test_a_working_directory_that_was_removed_belongs_to_no_project(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); {TELL}"

    assert told([sys.executable, "-c", code], gone, tmp_path) == "user"


def test_the_tests_of_this_project_are_run_by_a_tool() -> None:
    assert place() == place(str(Path(sysconfig.get_path("scripts"), "pytest")))
