"""What a worker can run at one queue: a plan for each handler there."""

from __future__ import annotations

import logging

from skep.core.record import pack
from skep.handler import Handler
from skep.worker.bench import Bench
from skep.worker.gate import Gate
from skep.worker.plan import Plan
from skep.worker.served import Served

log = logging.getLogger("skep.worker")


class Repertoire:
    """Plans by task, as records name them. In a notebook tasks are declared, or anew, when the worker runs already."""

    def __init__(self, served: Served, bench: Bench) -> None:
        self.plans: dict[bytes, Plan] = {}
        self._served = served
        self._bench = bench
        self._handlers: list[Handler] = []
        self._by_handler: dict[Handler, Plan | None] = {}
        self._knows = pack([])
        self.knows()

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
        served, bench = self._served, self._bench
        if (handler.executor or bench.options.executor) == "process":
            log.warning("%s: %r wants processes, which this worker has not: its jobs wait", served.name, handler.name)
            return None
        plan = Plan(handler, served.defaults.terms)
        if handler.concurrency is not None and handler.concurrency < bench.options.concurrency:
            plan.gate = Gate(handler.concurrency, bench.launch)
        return plan
