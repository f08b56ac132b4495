"""Drives the model with a random world around it, and checks the promises after every step.

python -m tests.model.check_model [minutes]          the model, for so long (default 10)
python -m tests.model.check_model mutants [word...]  each deliberate bug (with these words) must be caught
"""

from __future__ import annotations

import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.stateful import run_state_machine_as_test

from tests.model import model as reference
from tests.model.world import World

# The line as it is, and as it would be wrong. Those "to the letter" are what the contract said before it was
# tried.
MUTANTS: dict[str, tuple[str, str]] = {
    "a stall does not merge T": (
        "if not end and run.id in self.twins:",
        "if not end and outcome is not Outcome.STALLED and run.id in self.twins:",
    ),
    "cancel of A forgets T": ("if id in self.twins:\n", "if False:\n"),
    "a renewal does not stop lost runs": (
        "lost = [run for run in named if not self._owns(run)]",
        "lost = []",
    ),
    "a renewal keeps runs the worker does not name": (
        "if run.claim <= answered and run not in named:",
        "if False:",
    ),
    "a resend adds again": ("if not (last and number == last.number):", "if True:"),
    "a late copy is applied": ("if last and number < last.number:", "if False:"),
    "a refusal is not kept": (
        "            self.calls[lane] = last\n",
        "            if not isinstance(last.answer, SkepError):\n                self.calls[lane] = last\n",
    ),
    "a series loses T": (
        "            if twin:\n                self._merge(twin)\n        elif",
        "        elif",
    ),
    "promote on T": (
        "job := self._find(id, LATER)):",
        "job := self._find(id, LATER) or self.twins.get(id)):",
    ),
    "a held job does not expire": (
        "if job.status in LIVE and job.runs == 0",
        "if job.status in LIVE - {Status.HELD} and job.runs == 0",
    ),
    "a live id is pruned": (
        "if job.finished is None or job.keep is True:",
        (
            "if job.finished is None and job.status is Status.HELD and job.previous:\n"
            "            return True\n"
            "        if job.finished is None or job.keep is True:"
        ),
    ),
    "a stale run is accepted": (
        "self.jobs[run.id].lease == run",
        "self.jobs[run.id].lease is not None",
    ),
    "to the letter: a run is named by id, life and run": (
        "return run.id in self.jobs and self.jobs[run.id].lease == run",
        (
            "lease = run.id in self.jobs and self.jobs[run.id].lease\n"
            "        return bool(lease) and (lease.life, lease.number) == (run.life, run.number)"
        ),
    ),
    "a run is named by id, life, run and worker": (
        "return run.id in self.jobs and self.jobs[run.id].lease == run",
        (
            "lease = run.id in self.jobs and self.jobs[run.id].lease\n"
            "        return bool(lease) and replace(lease, claim=run.claim) == run"
        ),
    ),
    "T forgets its earlier adds": ("later.clamp(self.earliest),", "later.earliest,"),
    "T forgets to reset the counts": ("self.counts or later.counts,", "later.counts,"),
    "a return is a stall": (
        "(outcome is Outcome.STALLED)",
        "(outcome in (Outcome.STALLED, Outcome.RETURNED))",
    ),
    "a stop request does not last": (
        "if job.stop or outcome",
        "if job.stop and outcome is not Outcome.STALLED or outcome",
    ),
    "pause does not stop claims": ("0 if self.paused else n", "n"),
    "a job starts early": ("if job.due <= self.now else late", "if job.due <= self.now + 1000 else late"),
    "a stalled job fails without its failure job": (
        "if status is Status.FAILED and self._has",
        'if status is Status.FAILED and reason != "stalled" and self._has',
    ),
    "a failure job that fails writes another": (' and not job.id.startswith("failure-")', ""),
    "a silence is blamed on the workers": ("if silent or", "if"),
    "a backward step prolongs leases": ("if silent or self.now < self.clock_seen:", "if silent:"),
    "a resent claim takes more": ("if number > self.workers[worker].claim:", "if True:"),
    "jobs of unknown tasks are forgotten": (
        "        if n:\n            self._bring_back",
        "        if False:\n            self._bring_back",
    ),
    "priority is ignored": ("key=lambda job: (job.priority, job.place)", "key=lambda job: job.place"),
    "drop forgets T": ("self.jobs, self.twins = {}, {}", "self.jobs = {}"),
    "to the letter: only the end of a run repeats a series": (
        "follows = self._next_life(ended)",
        'follows = reason != "expired" and self._next_life(ended)',
    ),
    "remove takes an active job": ("set(Status) - {Status.ACTIVE}, twin)", "set(Status), twin)"),
}


def check(module: Any, examples: int, *, shrink: bool = True, derandomize: bool = False) -> str:
    """Empty, or what was found. With `shrink` the finding is raised, made as small as can be."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    profile = settings(
        max_examples=examples,
        stateful_step_count=60,
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=phases,
        print_blob=False,
        # An example is 60 calls with a dozen checks after each, and some rules are seldom allowed.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    World.module = module
    try:
        run_state_machine_as_test(World, settings=profile)
    except Exception as found:
        if shrink:
            raise
        return f"{type(found).__name__}: {next(iter(str(found).splitlines()), '')}"
    return ""


def mutant(old: str, new: str) -> Any:
    """The model with that one line wrong."""
    source = Path(reference.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, (source.count(old), old)
    module = types.ModuleType("mutant")
    sys.modules["mutant"] = module
    exec(compile(source.replace(old, new), "mutant", "exec"), vars(module))  # noqa: S102 - our own file
    return module


def check_mutants(words: list[str]) -> int:
    """Runs the deliberate bugs with all these words in their names; says how many were missed."""
    missed = 0
    for name, (old, new) in MUTANTS.items():
        if not all(word in name for word in words):
            continue
        before, began = World.examples, time.monotonic()
        found = check(mutant(old, new), 2000, shrink=False)
        missed += not found
        spent = f"{World.examples - before} examples, {time.monotonic() - began:.0f} s"
        print(f"{'caught' if found else 'MISSED'}  {name}: {found} ({spent})", flush=True)
    return missed


def main(words: list[str]) -> int:
    set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "check_model")
    if words[:1] == ["mutants"]:
        return check_mutants(words[1:])
    end = time.monotonic() + 60 * float(words[0] if words else 10)
    while time.monotonic() < end:
        check(reference, 500)
        print(f"{World.examples} examples, {World.steps} operations, nothing found", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
