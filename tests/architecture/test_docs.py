from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skep.core.events import TYPES
from skep.core.keys import NAMES
from tests.architecture import diagram, page
from tests.architecture.tree import ROOT, SRC

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)[^)]*\)")
SEEDS = [("B", 94), ("Q", 57), ("R", 72), ("G", 15), ("X", 9), ("D", 16)]
STATES = ("built", "half", "to come")
NOT_WRITTEN: set[str] = set()


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def to_run() -> list[object]:
    """Pages with something to run; those that start Spark are marked."""
    found: list[object] = []
    for each in PAGES:
        code = "".join(snippet.code for snippet in page.snippets(each) if snippet.excuse is None)
        marks = [pytest.mark.spark] if "skep.spark" in code else []
        if code:
            found.append(pytest.param(each, id=name(each), marks=marks))
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize("path", to_run())
def test_the_snippets_of_a_page_run_in_order_as_they_stand(path: Path, tmp_path: Path, skep_url: str) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

    done = subprocess.run(
        [sys.executable, page.__file__, str(path)],
        cwd=tmp_path,
        env=os.environ | {"PATH": programs, "SKEP_URL": skep_url},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_python_snippet_of_a_page_compiles(path: Path) -> None:
    for each in page.snippets(path):
        if each.language == "python":
            compile(each.python, f"{name(path)}, line {each.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_snippet_is_found_and_one_that_is_not_run_says_why(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    found = page.snippets(path)

    assert len(found) == len(re.findall(r"^ *```(?:python|console)", text, re.MULTILINE))
    assert sum(each.excuse is not None for each in found) == text.count("<!-- no-run")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_within_the_repository_leads_to_a_file(path: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(path.read_text(encoding="utf-8"))]

    missing = [target for target in targets if not (path.parent / target).exists()]

    assert not missing


def test_every_page_can_be_reached_from_the_index_of_the_docs() -> None:
    found, waiting = set[Path](), [DOCS / "index.md"]

    while waiting:
        path = waiting.pop()
        if path not in found and path.suffix == ".md":
            found.add(path)
            targets = LINK.findall(path.read_text(encoding="utf-8"))
            waiting += [(path.parent / target).resolve() for target in targets if (path.parent / target).is_file()]

    assert not [name(path) for path in sorted(DOCS.rglob("*.md")) if path not in found]


def test_the_diagram_of_the_life_of_a_job_is_that_of_the_table_of_states() -> None:
    _, shown, _ = diagram.parts(diagram.PAGE.read_text(encoding="utf-8"))

    assert shown == diagram.made(), "python -m tests.architecture.diagram writes it anew"


def test_every_feature_and_defect_of_the_four_systems_has_its_row_once() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+) \|", (DOCS / "seeds.md").read_text(encoding="utf-8"), re.MULTILINE)

    wanted = [f"{letter}{number}" for letter, count in SEEDS for number in range(1, count + 1)]

    assert sorted(rows) == sorted(wanted)


def test_every_line_of_the_roadmap_says_how_far_it_is() -> None:
    rows = re.findall(r"^\| .* \| ([^|]+) \|$", (ROOT / "ROADMAP.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert not [row for row in rows if not row.startswith((*STATES, "state"))]


def test_the_map_of_the_code_names_files_that_are_there() -> None:
    there = [str(path.relative_to(SRC)) for path in SRC.rglob("*")]
    text = (DOCS / "principles.md").read_text(encoding="utf-8").partition("## Where do I change")[2].partition("## ")[0]

    named = re.findall(r"`([\w/]+(?:\.py|\.lua|/))`", text)

    assert named
    assert not [each for each in named if not any(f"/{path}".endswith(f"/{each.rstrip('/')}") for path in there)]


def test_every_key_of_a_queue_has_its_row_and_no_other_has() -> None:
    text = (DOCS / "keys.md").read_text(encoding="utf-8").partition("## ")[0]
    first_cells = "".join(re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE))

    named = set(re.findall(r"`(\w+)`", first_cells))

    waiting = {each for each in NAMES if each.startswith("waiting")}
    assert named - waiting == {*NAMES} - waiting - {"queue"}
    assert {"waiting10", "waiting60"} <= named


def test_every_type_of_event_has_its_letter_in_the_format() -> None:
    text = (DOCS / "events.md").read_text(encoding="utf-8")

    told: dict[str, str] = {}
    for letters, names in re.findall(r"^\| ((?:`\w` ?)+)\| ([\w, ]+) \|", text, re.MULTILINE):
        told |= dict(zip(re.findall(r"`(\w)`", letters), names.split(", "), strict=True))

    assert told == {chr(letter): name for letter, name in TYPES.items() if name not in NOT_WRITTEN}
