from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skep import Queue
from tests.cli.apps import APP

SKEP = str(Path(sys.executable).with_name("skep"))

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with a program in it."""
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def start(app: Path, skep_url: str) -> Iterator[Start]:
    """Starts `skep ...` in the folder of the program. What is left at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        made = subprocess.Popen(
            [SKEP, *words],
            cwd=app,
            env=os.environ | {"SKEP_URL": skep_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(made)
        return made

    yield begin
    for each in started:
        with each:
            if each.poll() is None:
                each.send_signal(signal.SIGKILL)


@pytest.fixture
def mail(skep_url: str) -> Iterator[Queue]:
    with Queue("mail", skep_url) as queue:
        yield queue
