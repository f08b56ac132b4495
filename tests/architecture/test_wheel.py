from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.architecture.tree import SRC


def installed(package: str) -> Path:
    spec = find_spec(package)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@pytest.mark.skipif("SKEP_TEST_WHEEL" not in os.environ, reason="only `make test` installs the wheel")
def test_what_make_tests_is_the_installed_wheel_and_not_the_source_tree() -> None:
    assert SRC not in installed("skep").parents


@pytest.mark.parametrize("package", sorted(path.name for path in SRC.iterdir() if path.is_dir()))
def test_the_installed_package_has_every_file_of_the_source_tree(package: str) -> None:
    files = [path for path in (SRC / package).rglob("*") if path.is_file() and path.suffix != ".pyc"]

    differing = [
        str(path.relative_to(SRC))
        for path in files
        if not (there := installed(package) / path.relative_to(SRC / package)).is_file()
        or there.read_bytes() != path.read_bytes()
    ]

    assert not differing
    assert package != "skep" or installed(package).joinpath("py.typed").is_file()
