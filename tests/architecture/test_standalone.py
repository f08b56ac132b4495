from __future__ import annotations

import re

from tests.architecture.tree import ROOT, tracked_files

# What only one machine has, or what belongs to the configuration of a machine.
NOT_OURS = re.compile(
    r"\.\./shared"
    r"|\bpypi\.org|\bpythonhosted\.org|\bregistry\.npmjs\.org"
    r"|(?<![\w.~-])/(?:root|work/(?:main|notes|shared)|opt/(?:pypi|wheels))\b"
)


def test_no_file_names_a_folder_or_a_package_registry_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if NOT_OURS.search(line)
    ]

    assert not found
