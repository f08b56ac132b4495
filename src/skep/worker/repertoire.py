"""What a worker can run at one queue: a plan for each handler there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from skep.core.record import pack
from skep.errors import SkepError
from skep.handler import Handler
from skep.worker.bench import Bench
from skep.worker.executors.source import NotImportable, source_of
from skep.worker.gate import Gate
from skep.worker.plan import Plan
from skep.worker.served import Served

log = logging.getLogger("skep.worker")


def terms_of(settings: Mapping[str, str]) -> dict[str, Any]:
    """What the settings of a queue say of its runs; stalls are counted by the server."""
    said: dict[str, Any] = {
        name: int(settings[name]) for name in ("retries", "timeout", "max_logs") if name in settings
    }
    if "backoff" in settings:
        said["backoff"] = settings["backoff"]
    return said


class Repertoire:
    """Plans by task, as records name them. In a notebook tasks are declared, or anew, when the worker runs already."""

    def __init__(self, served: Served, bench: Bench) -> None:
        self.plans: dict[bytes, Plan] = {}
        self._served = served
        self._bench = bench
        self._handlers: list[Handler] = []
        self._by_handler: dict[Handler, Plan | None] = {}
        self._knows = pack([])
        self._terms: Mapping[str, Any] = served.defaults.terms
        self._began = False
        self.knows()
        self._began = True

    def go_by(self, settings: Mapping[str, str]) -> None:
        """Runs that are claimed from now on go by these settings of the queue, where neither job nor task knows better.

        What they leave open is as the queue's own code says.
        """
        try:
            terms = {**self._served.defaults.terms, **terms_of(settings)}
            if terms == self._terms:
                return
            told = [(plan, plan.rules_under(terms)) for plan in self.plans.values()]
        except (ValueError, SkepError):  # of another release, or written by hand: runs go on by what was known
            log.exception("%s: the settings of this queue cannot be read", self._served.name)
            return
        self._terms = terms
        for plan, rules in told:
            plan.rules = rules

    def knows(self) -> bytes:
        """The names of the tasks that it can run now, packed."""
        handlers = list(self._served.registry)
        if handlers != self._handlers:
            self._handlers = handlers
            known = self._by_handler
            self._by_handler = {each: known[each] if each in known else self._plan(each) for each in handlers}
            self.plans = {each.name.encode(): plan for each, plan in self._by_handler.items() if plan is not None}
            self._knows = pack([name.decode() for name in self.plans])
        return self._knows

    def _plan(self, handler: Handler) -> Plan | None:
        bench, plan = self._bench, Plan(handler, self._terms)
        if (handler.executor or bench.options.executor) == "process":
            try:
                bench.processes.check()
                plan.source = source_of(self._served.registry, handler)
            except NotImportable as error:
                if not self._began:
                    raise
                log.error("%s: the jobs of %r are held: %s", self._served.name, handler.name, error)
                return None
        if handler.concurrency is not None and handler.concurrency < bench.options.concurrency:
            plan.gate = Gate(handler.concurrency, bench.launch)
        return plan
