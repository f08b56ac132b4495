"""What docs/lifecycle.md shows of the table of states. `python -m tests.architecture.diagram` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skep.core.states import TRANSITIONS, JobState
from tests.architecture.tree import ROOT

PAGE = ROOT / "docs" / "lifecycle.md"
BEGIN = "<!-- made from src/skep/core/states.py by `python -m tests.architecture.diagram`: begin -->\n"
END = "<!-- end -->\n"

ANYWHERE = ("upsert", "update", "redact", "remove")
"""Scripts that lead from nearly every state: they are in the table, and would hide the others in the picture."""

NONE = "(no job)"


def made() -> str:
    """A picture of the scripts that move jobs, and a table of all."""
    return "\n".join([*_picture(), "", *_table(), ""])


def _picture() -> Iterator[str]:
    yield "```mermaid"
    yield "flowchart LR"
    for name, (before, after) in TRANSITIONS.items():
        if name not in ANYWHERE:
            yield f"    {name}([{name}])"
            yield from (f"    {state} --> {name}" for state in _in_order(before) if state)
            yield from (f"    {name} --> {state}" for state in _in_order(after) if state)
    yield "```"


def _table() -> Iterator[str]:
    yield "| script | from | to |"
    yield "|---|---|---|"
    for name, (before, after) in TRANSITIONS.items():
        yield f"| `{name}` | {_words(before)} | {_words(after)} |"


def _words(states: Iterable[str]) -> str:
    return ", ".join(state or NONE for state in _in_order(states))


def _in_order(states: Iterable[str]) -> list[str]:
    order = ["", *JobState]
    return sorted(states, key=order.index)


def parts(text: str) -> tuple[str, str, str]:
    """What stands before, in and behind the part that is made."""
    before, _, rest = text.partition(BEGIN)
    made_before, _, behind = rest.partition(END)
    return before + BEGIN, made_before, END + behind


if __name__ == "__main__":
    head, _, foot = parts(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(head + made() + foot, encoding="utf-8")
