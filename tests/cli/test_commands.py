from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skep import Queue, Worker
from skep.testing import Server
from tests.cli.conftest import SKEP, Start
from tests.embedded.people import a_plain_environment, end

EVIL = "\x1b[2J\x07evil\r\n\u202e\x9b"

Ran = tuple[int, str, str]
Run = Callable[..., Ran]


@pytest.fixture
def skep(start: Start) -> Run:
    """Runs `skep ...` to its end: the exit code, and what it wrote."""

    def run(*words: str) -> Ran:
        done = start(*words)
        out, errors = done.communicate(timeout=20)
        assert "Traceback" not in errors, errors
        return done.returncode, out, errors

    return run


def finished(mail: Queue) -> dict[str, str]:
    """A queue with a job that succeeded and one that failed: their ids."""

    @mail.task(retries=0)
    def greet(who: str) -> str:
        if who == "nobody":
            raise LookupError(f"there is {who} {EVIL}")
        return f"hello {who}"

    with Worker(mail, log_level=0):
        good, bad = greet.options(id="good").enqueue("you"), greet.options(id="bad", name=EVIL).enqueue("nobody")
        good.result(timeout=10)
        with pytest.raises(Exception, match="there is nobody"):
            bad.result(timeout=10)
    return {"good": good.id, "bad": bad.id}


def test_a_job_is_added_with_its_options_and_told_of(skep: Run, mail: Queue) -> None:
    words = ("--task", "nap", "--id", "n1", "--delay", "60", "--priority", "high", "--retries", "2", "--meta", "[1]")

    code, out, _ = skep("add", "mail", '{"seconds": 1}', *words)

    job = mail.get("n1")
    assert (code, out) == (0, "added n1\n")
    assert job is not None
    assert (job.task, job.data, job.status, job.priority, job.meta) == ("nap", {"seconds": 1}, "scheduled", 20, [1])
    assert job.options.retries == 2


def test_a_job_may_come_without_data_or_from_a_pipe(mail: Queue, app: Path, skep_url: str) -> None:
    words, url = [SKEP, "add", "mail", "-", "--json"], {"SKEP_URL": skep_url}

    done = subprocess.run(words, input='{"n": 1e3}', env=os.environ | url, capture_output=True, text=True, check=True)

    told = json.loads(done.stdout)
    [job] = mail.jobs()
    assert (told["id"], told["outcome"]) == (job.id, "added")
    assert job.data == {"n": 1000.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "mail", "{bad"), "is not JSON"),
        (("add", "mail", "1", "--priority", "urgent"), "priority"),
        (("add", "mail", "1", "--run-at", "2030-01-01T00:00"), "zone"),
        (("add", "ma{il", "1"), "braces"),
        (("jobs", "mail", "--status", "lost"), "waiting"),
        (("jobs", "mail", "--limit", "0"), "from 1 on"),
        (("cancel", "mail"), "name ids"),
        (("remove", "mail", "--status", "failed"), "--yes"),
        (("frobnicate",), "invalid choice"),
    ],
)
def test_wrong_usage_is_told_in_words_with_exit_code_two(skep: Run, words: tuple[str, ...], said: str) -> None:
    code, out, errors = skep(*words)

    assert (code, out) == (2, "")
    assert said in errors


def test_an_id_that_is_taken_is_refused_with_exit_code_one(skep: Run, mail: Queue) -> None:
    mail.add(1, id="taken")

    code, _, errors = skep("add", "mail", "2", "--id", "taken", "--on-conflict", "raise")

    assert code == 1
    assert "taken" in errors


def test_queues_are_listed_with_their_counts(skep: Run, mail: Queue, skep_url: str) -> None:
    mail.add_many(range(3))
    with Queue("other", skep_url) as other:
        other.add(1, delay=60)
        other.pause()

    code, out, _ = skep("queues", "--json")

    found = {each["queue"]: each for each in map(json.loads, out.splitlines())}
    assert code == 0
    assert (found["mail"]["waiting"], found["mail"]["paused"]) == (3, False)
    assert (found["other"]["scheduled"], found["other"]["paused"]) == (1, True)
    assert skep("queues")[1].splitlines()[0].startswith("QUEUE\tWORKERS\tWAITING")


def test_jobs_are_listed_by_what_they_match_and_more_is_said(skep: Run, mail: Queue) -> None:
    finished(mail)
    mail.add_many(range(3), task="other")

    failed = skep("jobs", "mail", "--status", "failed", "--task", "greet")
    some = skep("jobs", "mail", "--limit", "2", "--json")

    assert failed[0] == 0
    assert [line.split("\t")[0] for line in failed[1].splitlines()] == ["ID", "bad"]
    assert "LookupError" in failed[1]
    assert len(some[1].splitlines()) == 2
    assert "there are more than these 2" in some[2]


def test_a_job_is_told_whole_with_its_result_or_its_error(skep: Run, mail: Queue) -> None:
    finished(mail)

    good, bad = skep("job", "mail", "good", "--json"), skep("job", "mail", "bad", "--logs")

    assert (good[0], bad[0]) == (0, 0)
    assert json.loads(good[1])["result"] == "hello you"
    assert "error  LookupError: there is nobody" in bad[1]
    assert "raise LookupError" in bad[1]


def test_an_unknown_job_is_told_of_with_exit_code_one(skep: Run, mail: Queue) -> None:
    code, out, errors = skep("job", "mail", "nobody")

    assert (code, out) == (1, "")
    assert "has no job 'nobody'" in errors


@pytest.mark.parametrize(
    "words", [("jobs", "mail"), ("job", "mail", "bad", "--logs"), ("job", "mail", "bad", "--json")]
)
def test_nothing_of_a_job_reaches_the_terminal_raw(skep: Run, mail: Queue, words: tuple[str, ...]) -> None:
    finished(mail)
    bad: Any = mail.get("bad")
    bad.log(EVIL)

    code, out, _ = skep(*words)

    assert code == 0
    assert "evil" in out
    assert not [each for each in out.replace("\n", "").replace("\t", "") if not each.isprintable()]
    assert "\x1b" not in out


def test_columns_are_aligned_where_a_terminal_shows_them(app: Path, mail: Queue, skep_url: str) -> None:
    mail.add(1, id="a")
    mail.add(1, id="a-longer-one")
    ours, theirs = pty.openpty()

    done = subprocess.run([SKEP, "jobs", "mail"], env=os.environ | {"SKEP_URL": skep_url}, stdout=theirs, check=True)

    os.close(theirs)
    shown = os.read(ours, 65536).decode().splitlines()
    os.close(ours)
    assert done.returncode == 0
    assert len({line.index(word) for line, word in zip(shown, ("STATUS", "waiting", "waiting"), strict=True)}) == 1


def test_acts_on_ids_tell_which_have_changed(skep: Run, mail: Queue) -> None:
    mail.add(1, id="a", delay=60)
    mail.add(1, id="b")

    held, promoted = skep("hold", "mail", "b"), skep("promote", "mail", "a", "b", "nobody")
    released, cancelled = skep("release", "mail", "b", "--json"), skep("cancel", "mail", "a")
    retried, removed = skep("retry", "mail", "a"), skep("remove", "mail", "b")

    assert held[:2] == (0, "b\n")
    assert promoted[:2] == (1, "a\n")
    assert "nothing to do for 'nobody'" in promoted[2]
    assert json.loads(released[1]) == {"changed": ["b"], "unchanged": []}
    assert [each[0] for each in (released, cancelled, retried, removed)] == [0, 0, 0, 0]
    assert mail.counts().total == mail.counts().waiting == 1


def test_all_that_match_are_acted_on_without_asking_where_yes_is_said(skep: Run, mail: Queue) -> None:
    mail.add_many(range(3), name="batch")
    mail.add(1)

    first, again = (skep("remove", "mail", "--name", "batch", "--yes") for _ in range(2))

    assert first[:2] == (0, "remove: 3 changed\n")
    assert again[0] == 1
    assert mail.counts().waiting == 1


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("n", 2)])
def test_what_destroys_in_bulk_asks_on_a_terminal(mail: Queue, skep_url: str, answer: str, left: int) -> None:
    mail.add_many(range(2))
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())

    done = subprocess.run(
        [SKEP, "remove", "mail", "--status", "waiting"],
        stdin=theirs,
        env=os.environ | {"SKEP_URL": skep_url},
        capture_output=True,
        text=True,
        check=False,
    )

    os.close(ours)
    os.close(theirs)
    assert done.stdout.startswith("remove all jobs of mail with status=waiting? [y/N] ")
    assert done.returncode == (1 if left else 0)
    assert mail.counts().waiting == left


def test_output_that_nobody_reads_to_its_end_is_no_crash(mail: Queue, skep_url: str) -> None:
    mail.add_many([{"x": "y" * 2000}] * 200)

    done = subprocess.run(
        ["sh", "-c", f"{SKEP} jobs mail --limit 200 --json | head -n 1"],
        env=os.environ | {"SKEP_URL": skep_url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_what_the_terminal_cannot_write_is_written_as_an_escape(mail: Queue, skep_url: str) -> None:
    mail.add(1, id="caf\u00e9")

    done = subprocess.run(
        [SKEP, "jobs", "mail"],
        env=os.environ | {"SKEP_URL": skep_url, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "caf\\xe9" in done.stdout


def test_a_queue_is_paused_and_resumed_once_each(skep: Run, mail: Queue) -> None:
    mail.add(1)

    codes = [skep(verb, "mail")[0] for verb in ("pause", "pause", "resume", "resume")]

    assert codes == [0, 1, 0, 1]
    assert not mail.paused


def test_the_doctor_tells_of_a_server_and_what_to_do(skep: Run) -> None:
    with Server() as server:
        code, out, _ = skep("doctor", "--url", server.url.replace("unix://", "unix://user:secret@"))

    assert code == 1  # it has no such user
    assert "secret" not in out


def test_the_doctor_tells_how_a_server_keeps_what_it_has(skep: Run, skep_url: str) -> None:
    code, out, _ = skep("doctor", "--json")

    told = json.loads(out)
    assert code == 0
    assert told["url"] == skep_url
    assert told["eviction"] == "noeviction"
    assert told["persistence"] == "none"
    assert told["clock"].endswith(" s")
    assert [each["level"] for each in told["findings"]] == ["warning"]


def test_the_doctor_says_no_where_the_server_evicts_jobs(skep: Run) -> None:
    with Server(maxmemory_policy="allkeys-lru", appendonly=True) as server:
        code, out, _ = skep("doctor", "--url", server.url)

    assert code == 1
    assert "error: the server evicts any key" in out


def test_a_worker_refuses_a_server_that_evicts_jobs(skep: Run) -> None:
    with Server(maxmemory_policy="allkeys-lru", appendonly=True) as server:
        code, _, errors = skep("worker", "app:mail", "--url", server.url, "--burst")

    assert code == 1
    assert "evicts any key" in errors


def test_the_doctor_tells_where_the_embedded_server_is_and_starts_none(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"

    done = subprocess.run(
        [SKEP, "doctor", "--url", f"embedded://{folder}"],
        cwd=tmp_path,
        env=a_plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout
    assert "does not run" in done.stdout
    assert not folder.exists()


def test_the_doctor_tells_that_the_embedded_server_runs(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    words = [SKEP, "doctor", "--json", "--url", f"embedded://{folder}"]
    try:
        with Queue("mail", f"embedded://{folder}") as mail:
            mail.add(1)
            done = subprocess.run(words, cwd=tmp_path, env=a_plain_environment(), capture_output=True, check=True)
    finally:
        end(folder)

    told = json.loads(done.stdout)
    assert (told["folder"], told["running"]) == (str(folder), True)
    assert told["persistence"] == "append-only file, everysec"
    assert told["findings"] == []


def test_a_server_that_is_away_is_told_of_in_words(skep: Run, tmp_path: Path) -> None:
    code, _, errors = skep("queues", "--url", f"unix://{tmp_path}/nobody.sock")

    assert code == 1
    assert "nobody.sock" in errors
