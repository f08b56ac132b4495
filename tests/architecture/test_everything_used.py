from __future__ import annotations

import ast
import re

from skep.core.keys import NAMES
from tests.architecture.tree import SCRIPTS, modules

SCRIPT_NAMES = {path.stem for path in SCRIPTS.glob("*.lua")}
LUA = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.lua"))


def attributes_of(name: str) -> set[str]:
    """What the code asks of whatever goes by this name: `scripts.claim` asks `claim` of `scripts`."""
    return {
        node.attr
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def declared_scripts() -> set[str]:
    """The names that the package of the scripts declares as scripts: `claim: Script`."""
    declarations = (
        node for node in ast.walk(ast.parse((SCRIPTS / "__init__.py").read_bytes())) if isinstance(node, ast.AnnAssign)
    )
    return {ast.unparse(node.target) for node in declarations if ast.unparse(node.annotation) == "Script"}


def test_every_script_is_sent_by_some_function() -> None:
    assert SCRIPT_NAMES - attributes_of("scripts") == set()


def test_every_script_is_known_to_type_checkers_and_no_other_is() -> None:
    assert declared_scripts() == SCRIPT_NAMES


def test_every_key_of_a_queue_is_used_by_some_script() -> None:
    used = set(re.findall(r"\bkey\.(\w+)", LUA))

    assert set(NAMES) - used == set()


def test_scripts_use_no_key_that_a_queue_does_not_have() -> None:
    used = set(re.findall(r"\bkey\.(\w+)", LUA))

    assert used - set(NAMES) == set()
