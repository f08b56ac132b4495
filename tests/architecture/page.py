"""Runs the snippets of one page of the documentation, in order, as a reader would: `python page.py PAGE`.

In the working directory, against the server of `SKEP_URL`. Python of a page shares its names; a snippet that begins
with `# name.py` becomes that file; what stands below a prompt has to be what comes out (`...` for anything);
`skep worker` without `--burst` runs until the page is at its end. A snippet behind `<!-- no-run: why -->` is only
compiled.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SNIPPET = re.compile(
    r"^(?:<!-- no-run: (?P<excuse>[^\n]+) -->\n+)?```(?P<language>python|console)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# (?P<name>\w+\.py)\n")
OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PATIENCE = 60.0


@dataclass(frozen=True)
class Snippet:
    """A piece of a page: where it begins, and why it is not run, if it is not."""

    line: int
    language: str
    code: str
    excuse: str | None

    @property
    def file(self) -> str | None:
        """The name of the file that it is."""
        found = FILE.match(self.code)
        return found["name"] if found else None

    @property
    def is_session(self) -> bool:
        """Whether it has prompts and answers."""
        return self.code.lstrip().startswith(">>>")

    @property
    def python(self) -> str:
        """Its Python, without prompts and answers."""
        if not self.is_session:
            return self.code
        return "".join(each.source for each in doctest.DocTestParser().get_examples(self.code))

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console, and what it is said to print; "": anything."""
        for part in re.split(r"^\$ ", self.code, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def snippets(page: Path) -> list[Snippet]:
    """All of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(text.count("\n", 0, found.start("code")) + 1, found["language"], found["code"], found["excuse"])
        for found in SNIPPET.finditer(text)
    ]


class Reader:
    """Does what a page says."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._loop = asyncio.Runner()
        self._workers: list[subprocess.Popen[bytes]] = []

    def read(self) -> None:
        """All snippets, and the end of what they have started."""
        try:
            with self._loop:
                for each in snippets(self._page):
                    if each.excuse is None:
                        self._do(each)
        finally:
            for worker in self._workers:
                worker.terminate()
            codes = [worker.wait(PATIENCE) for worker in self._workers]
        if any(codes):
            raise SystemExit(f"workers of {self._page} ended with {codes}")

    def _do(self, snippet: Snippet) -> None:
        if snippet.language == "console":
            for command, output in snippet.commands():
                self._command(snippet, command, output)
        elif snippet.file is not None:
            Path(snippet.file).write_text(snippet.code, encoding="utf-8")
        elif snippet.is_session:
            self._session(snippet)
        else:
            self._execute(snippet)

    def _execute(self, snippet: Snippet) -> None:
        # In its place on the page, so that a traceback names the line. The flags of this file are not the reader's.
        code = compile(
            "\n" * (snippet.line - 1) + snippet.code,
            str(self._page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        awaited = eval(code, self._names)  # noqa: S307 - our own documentation
        if inspect.iscoroutine(awaited):
            self._loop.run(awaited)

    def _session(self, snippet: Snippet) -> None:
        place = str(self._page)
        test = doctest.DocTestParser().get_doctest(snippet.code, self._names, place, place, snippet.line - 1)
        found = doctest.DocTestRunner(optionflags=OUTPUT).run(test, clear_globs=False)
        self._names.update(test.globs)
        if found.failed:
            raise SystemExit(f"{place}, line {snippet.line}: the answers are others")

    def _command(self, snippet: Snippet, command: str, output: str) -> None:
        if command.startswith("skep worker") and "--burst" not in command:
            self._workers.append(subprocess.Popen(shlex.split(command, comments=True)))
            return
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        said = doctest.OutputChecker().check_output(output, done.stdout, OUTPUT) if output else True
        if done.returncode or not said:
            place = f"{self._page}, line {snippet.line}"
            raise SystemExit(f"{place}: {command!r} ended with {done.returncode}: {done.stdout}")


if __name__ == "__main__":
    # Modules of the page lie in the working directory, and not beside this file.
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as Python itself would put it there
    Reader(Path(sys.argv[1])).read()
