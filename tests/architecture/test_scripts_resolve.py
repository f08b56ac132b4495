"""What is sent to the server has every function that it calls, and none that it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skep import scripts
from tests.architecture.tree import SCRIPTS

DEFINED = re.compile(r"^(?:local )?function ([\w.]+)\(", re.MULTILINE)
LIBRARY = {
    name for path in (SCRIPTS / "lib").glob("*.lua") for name in DEFINED.findall(path.read_text()) if "." in name
}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.lua")), ids=lambda path: path.stem)
def test_a_script_brings_the_functions_that_it_calls_and_no_others(path: Path) -> None:
    source = scripts.load(path.stem).source

    brought = set(DEFINED.findall(source))

    text = re.sub(r"\blater_(\w+)\(\)\.", r"\1.", DEFINED.sub("", source))
    called = {name for name in LIBRARY if re.search(rf"(?<![\w.]){re.escape(name)}\b", text)}
    assert called - brought == set()
    assert {name for name in brought & LIBRARY if not name.startswith("happens.")} - called == set()
