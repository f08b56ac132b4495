"""The thin path through the whole, as a user walks it: `make demo`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo" / "run.py"


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_demo_runs_jobs_from_python_and_spark_and_shows_their_runs_as_a_table(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO)], cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "2,200 succeeded, 1 failed; the first said 'greeted 42 in fr'" in done.stdout
    rows = [line.replace(" ", "") for line in done.stdout.splitlines() if line.startswith("|")]
    assert "|score|failed|1|" in rows
    assert "|score|succeeded|199|" in rows
    assert "|welcome|retrying|200|" in rows
    assert "|welcome|succeeded|2001|" in rows
