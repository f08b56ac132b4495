"""Deliberate bugs in the scripts: what the oracle must catch, so that its silence means something."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from skep import scripts
from skep.testing import Server
from tests.model.test_oracle import explore
from tests.support.engine import compact_server
from tests.support.mirror import Mirror

# Named as the bugs of the model's own checker: a file, its text as it is, and as it would be wrong.
MUTANTS: dict[str, tuple[str, str, str]] = {
    "a stall does not merge T": (
        "lib/run",
        "if twin then life.merge(twin, how, job, status, known) end",
        "if twin and word ~= 'stalled' then life.merge(twin, how, job, status, known) end",
    ),
    "cancel of A forgets T": ("cancel", "if twin then cancel_twin(twin, twin_change) end", ""),
    "a renewal does not stop lost runs": ("renew", "lost[#lost + 1] = ARGV[i]", "lost = lost"),
    "a renewal keeps runs the worker does not name": (
        "renew",
        "<= answered and named[id] ~= lease then",
        "< 0 then",
    ),
    "a resend adds again": ("lib/calls", "  if answer then\n", "  if false then\n"),
    "a late copy is applied": ("lib/calls", "if last and tonumber(last) > tonumber(number) then", "if false then"),
    "a refusal is not kept": (
        "lib/calls",
        "if call == '' then return answer end",
        "if call == '' or string.sub(answer, 1, 1) == '!' then return answer end",
    ),
    "a series loses T": (
        "lib/life",
        "if twin then life.merge(twin, twin_change, follows, place.status(job.id), before) end",
        "",
    ),
    "promote on T": (
        "promote",
        "if status ~= 'scheduled'",
        "if status == 'active' and life.twin(job.id) then return true end\n  if status ~= 'scheduled'",
    ),
    "a held job does not expire": (
        "lib/tick",
        "if known.began or keep.hashes[status] then",
        "if known.began or status == 'held' or keep.hashes[status] then",
    ),
    "a live id is pruned": (
        "lib/keep",
        "if endings[k] and string.sub(endings[k], 1, 6) == string.sub(chunk, 1, 6) then",
        "if true then",
    ),
    "a stale run is accepted": ("leave_run", "owned[k] == lease", "owned[k]"),
    "a run is named by id and worker": (
        "leave_run",
        "owned[k] == lease",
        "string.match(owned[k] or '', '^%S+') == string.match(lease, '^%S+')",
    ),
    "T forgets its earlier adds": (
        "lib/change",
        "both.earliest = first.earliest and change.due(first.earliest, second) or second.earliest",
        "both.earliest = second.earliest",
    ),
    "T forgets to reset the counts": (
        "lib/change",
        "both.counts = first.counts or second.counts",
        "both.counts = second.counts",
    ),
    "a return is a stall": ("lib/run", "returned = { counts = {} }", "returned = { counts = { 'stalls' } }"),
    "a stop request does not last": (
        "lib/run",
        "(stop or word == 'cancelled')",
        "(stop and word ~= 'stalled' or word == 'cancelled')",
    ),
    "pause does not stop claims": ("claim", "if not duty[1] and not overdue then", "if not overdue then"),
    "a job starts early": (
        "lib/place",
        "if job.due > now then\n    local status",
        "if job.due > now + 1000 then\n    local status",
    ),
    "a stalled job fails without its failure job": (
        "lib/life",
        "if how.status == 'failed' then write_failure_job",
        "if how.status == 'failed' and not string.find(how.text, 'WorkerDied', 1, true) then write_failure_job",
    ),
    "a failure job that fails writes another": (
        "lib/life",
        "if string.sub(job.id, 1, 8) == 'failure-' then return end",
        "",
    ),
    "a silence is blamed on the workers": (
        "lib/tick",
        "if now < clock or now - renewed > lease / 2 then",
        "if now < clock then",
    ),
    "a backward step prolongs leases": (
        "lib/tick",
        "if now < clock or now - renewed > lease / 2 then",
        "if now - renewed > lease / 2 then",
    ),
    "a resent claim takes more": (
        "claim",
        "tonumber(string.sub(last, 1, 16)) >= number",
        "tonumber(string.sub(last, 1, 16)) > number",
    ),
    "jobs of unknown tasks are forgotten": ("claim", "if server('EXISTS', key.aside) == 1 then", "if false then"),
    "jobs set aside are taken before their time": (
        "lib/place",
        "server('ZADD', key.timers, job.due, 'a' .. job.id)",
        "server('ZADD', key.aside, 0, place.aside(job.task, job.id))",
    ),
    "priority is ignored": ("lib/take", "for priority = 10, 60, 10 do", "for priority = 60, 10, -10 do"),
    "drop forgets T": ("drop", "key.active, key.blocked, key.stops", "key.active, key.stops"),
    "only the end of a run repeats a series": (
        "lib/life",
        "local follows = next_life(job, how.next_due)",
        "local follows = how.reason ~= 'expired' and next_life(job, how.next_due) or nil",
    ),
    "remove takes an active job": ("remove", "if status == 'active' then return false end", ""),
    "an entry that no longer counts is taken": (
        "lib/take",
        "        if left then\n",
        "        if left and false then\n",
    ),
    "a lost run is returned to the back": ("lib/run", "word == 'returned')", "false)"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with compact_server() as server:
        yield server


def source(file: str) -> str:
    return scripts.folder().joinpath(f"{file}.lua").read_text(encoding="utf-8")


def broken(bug: str) -> Callable[[str, str], str]:
    """What is sent of a script instead: all of them that have this text have the bug."""
    _, right, wrong = MUTANTS[bug]
    return lambda _, whole: whole.replace(right, wrong)


@pytest.mark.parametrize("bug", MUTANTS)
def test_each_deliberate_bug_is_still_one_place_of_the_scripts(bug: str) -> None:
    file, right, wrong = MUTANTS[bug]

    assert source(file).count(right) == 1
    assert right != wrong


@pytest.mark.skipif("SKEP_MUTANTS" not in os.environ, reason="takes minutes: SKEP_MUTANTS=1")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", MUTANTS)
def test_the_oracle_catches_every_deliberate_bug(server: Server, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    monkeypatch.setattr(Mirror, "mutate", staticmethod(broken(bug)))

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the script or a check raised is the finding
        explore(server, 3000, shrink=False)
