from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skep.embedded import url_of
from tests.embedded.people import end


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data folder, in which nobody is at work when the test is over."""
    yield tmp_path / "data"
    end(tmp_path / "data")


@pytest.fixture
def url(folder: Path) -> str:
    """What names the folder."""
    return url_of(folder)
