"""The main job of skep from end to end: jobs in from Python and a DataFrame, a worker, its history as a table."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from skep import Queue

HERE = Path(__file__).resolve().parent
PYTHON_JOBS, SPARK_JOBS = 200, 2000
WIDTH = 40


def say(text: str) -> None:
    """A heading."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


class Progress:
    """A bar on a terminal, a line for every quarter elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._quarter = -1

    def show(self, done: int) -> None:
        """So many of all have ended."""
        if sys.stdout.isatty():
            filled = WIDTH * done // self._total
            print(f"\r  [{'#' * filled}{'.' * (WIDTH - filled)}] {done:,} of {self._total:,}", end="", flush=True)
        elif (quarter := 4 * done // self._total) > self._quarter:
            self._quarter = quarter
            print(f"  {done:,} of {self._total:,} jobs have ended", flush=True)


def main() -> None:
    """Runs the demo in a folder of its own, which goes at the end."""
    # Jobs that fail for good are errors in the log; that the server is an embedded one need not be said here.
    logging.basicConfig(level=logging.ERROR, format="  %(levelname)s %(message)s")
    folder = tempfile.mkdtemp(prefix="skep-demo-")
    os.environ["SKEP_URL"] = f"embedded://{folder}"
    sys.path.insert(0, str(HERE))
    try:
        demonstrate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ended(queue: Queue) -> int:
    """How many jobs have come to an end."""
    counts = queue.counts()
    return counts.succeeded + counts.failed


def demonstrate() -> None:
    """The steps, one after another."""
    import app

    say("1. Jobs from Python (an embedded Valkey starts by itself)")
    added = app.mail.add_many(({"user_id": i} for i in range(PYTHON_JOBS)), task="score")
    first = app.welcome.enqueue(42, lang="fr")
    print(f"  {added.count + 1:,} jobs added, the last one {first.id}")

    say("2. Jobs from a DataFrame, exactly once")
    import skep.spark

    spark = skep.spark.session("local[2]")
    users = spark.range(SPARK_JOBS).selectExpr("id AS user_id", "IF(id % 3 = 0, 'fr', 'en') AS lang")
    users.write.format("skep").option("queue", "mail").option("task", "welcome").mode("append").save()
    print(f"  {app.mail.counts().waiting:,} jobs wait")

    say("3. A worker runs them: skep worker app:mail --burst")
    worker = subprocess.Popen(
        [str(Path(sys.executable).with_name("skep")), "worker", "app:mail", "--burst", "--concurrency", "50"],
        cwd=HERE,
    )
    progress = Progress(app.mail.counts().total)
    while worker.poll() is None:
        progress.show(ended(app.mail))
        time.sleep(0.05)
    progress.show(ended(app.mail))
    counts = app.mail.counts()
    if worker.returncode:
        raise SystemExit(f"the worker ended with {worker.returncode}")
    print(f"\n  {counts.succeeded:,} succeeded, {counts.failed:,} failed; the first said {first.result(timeout=10)!r}")

    say("4. Its history is a table: the runs, made by Spark from the events")
    events = spark.read.format("skep").option("queue", "mail").option("table", "events").load()
    runs = skep.spark.runs(events).cache()
    runs.groupBy("task", "outcome").count().orderBy("task", "outcome").show()
    runs.where("outcome <> 'succeeded'").select("job", "task", "run", "outcome", "error_type", "ran").show(5)
    spark.stop()


if __name__ == "__main__":
    main()
