"""A child process: it is told of one run after the other, and tells how each goes.

Over one socket it hears of runs, and tells; over the other it is told to stop, and notices that its worker is gone.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import importlib
import inspect
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any

from skep.core.job import encode_error
from skep.core.outcome import Outcome
from skep.core.record import read_head
from skep.handler import Registry
from skep.lifecycle import Run
from skep.worker.attempt import Attempt, Cause
from skep.worker.context import current
from skep.worker.executors import wire
from skep.worker.executors.source import NotImportable, load_function, load_handler
from skep.worker.failure import describe
from skep.worker.lifespan import enter
from skep.worker.plan import Plan, Rules, read_backoff

log = logging.getLogger("skep.worker")

PR_SET_PDEATHSIG = 1
READ = 1 << 18


class Room:
    """Where runs of one handler's queue take place in this child."""

    worker = ""

    def __init__(self, child: Child, plan: Plan, state: Any) -> None:
        self.child = child
        self.plan = plan
        self.state = state
        self.queue = ""
        self.ahead = 0.0

    def server_ms(self) -> int:
        """About what the server's clock shows."""
        return int(self.ahead + monotonic() * 1000)

    def note(self, attempt: Attempt, kind: str, text: bytes | str, level: str) -> None:
        """Progress or a log line, from any thread."""
        self.child.tell_of(attempt, wire.Note(kind, text.encode() if isinstance(text, str) else text, level))

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """The attempt is over."""
        self.child.end(attempt, outcome)


class Guest(Attempt):
    """An attempt here. That it looks for an end, or has callbacks for it, is worth some seconds: the worker is told."""

    __slots__ = ("child", "looked", "told")

    child: Child
    looked: bool
    told: bool

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        self.looked = True
        self._ask_patience()
        return self.cause is not None

    def when_stopped(self, callback: Callable[[], object]) -> None:
        """Calls this when it is told to end."""
        self._ask_patience()
        super().when_stopped(callback)

    def call_all(self) -> None:
        """Calls what is to be called at its end. A run that does not look for its end needs no more time then."""
        for callback in self._callbacks or ():
            try:
                given = callback()
                if inspect.iscoroutine(given):
                    self.child.wait_for(given)
            except Exception:
                log.exception("job %r: an on_cancel callback failed", self.id)
        if not self.looked:
            self.child.tell_of(self, wire.Patience(False))

    def _ask_patience(self) -> None:
        if not self.told:
            self.told = True
            self.child.tell_of(self, wire.Patience(True))


class Child:
    """This process, as a worker's child."""

    def __init__(self, orders: socket.socket, control: socket.socket) -> None:
        self._orders = orders
        self._control = control
        self._heard = bytearray()
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()
        self._guest: Guest | None = None
        self._number = 0
        self._rooms: dict[int, Room] = {}
        self._states: dict[Registry, Any] = {}
        self._stack = AsyncExitStack()
        self._runner = asyncio.Runner()
        self._done = 0
        self._setup = wire.Setup([])
        self._entered = False
        self._state: Any = None

    def run(self) -> None:
        """Until the worker closes the socket."""
        try:
            for order in iter(self._next, None):
                if isinstance(order, wire.Setup):
                    self._set_up(order)
                elif isinstance(order, wire.Begin):
                    self._begin(order)
            self._runner.run(self._stack.aclose())
        finally:
            self._runner.close()

    def tell_of(self, attempt: Attempt, message: wire.Message) -> None:
        """Tells something of a run; a thread that it has left behind is not heard any more."""
        with self._lock:
            if attempt is self._guest:
                self._orders.sendall(wire.frame(message))

    def end(self, attempt: Attempt, outcome: Outcome) -> None:
        """Tells how it has ended: nothing is told of it later."""
        self._done += 1
        trace = "" if attempt.error is None else describe(attempt.error).traceback
        told = wire.frame(wire.ended(outcome, trace, last=self._is_spent()))
        with self._lock:
            if attempt is self._guest:
                self._guest = None
                self._orders.sendall(told)

    def wait_for(self, given: Any) -> None:
        """Awaits what a callback gave: on the handler's loop if it has one."""
        loop = self._runner.get_loop()
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(given, loop).result()
        else:
            asyncio.run(given)

    # What it is told.

    def _next(self) -> wire.Order | None:
        while True:
            found = self._waiting or wire.frames(self._heard)
            if found:
                self._waiting = found[1:]
                order: wire.Order = wire.read_order(found[0])
                return order
            more = self._orders.recv(READ)
            if not more:
                return None
            self._heard += more

    def listen(self) -> None:
        """Hears that a run is to end, or that the worker is gone: then so is this process."""
        heard = bytearray()
        while more := self._control.recv(READ):
            heard += more
            for text in wire.frames(heard):
                order = wire.read_order(text)
                guest = self._guest
                if isinstance(order, wire.Stop) and guest is not None and order.number == self._number:
                    guest.cause = Cause[order.cause]
                    threading.Thread(target=guest.call_all, name="skep-on-cancel", daemon=True).start()
        os._exit(1)

    def _set_up(self, setup: wire.Setup) -> None:
        self._setup = setup
        if setup.log_level is not None:
            logging.basicConfig(level=setup.log_level, format=setup.log_format or logging.BASIC_FORMAT)

    def _begin(self, begin: wire.Begin) -> None:
        self._number = begin.number
        try:
            if begin.source is not None:
                self._rooms[begin.handler] = self._load(begin.source)
        except BaseException as error:  # noqa: BLE001 - whatever a module raises when it is imported, its job is told
            told = describe(error, "permanent" if isinstance(error, NotImportable) else "error")
            self._orders.sendall(wire.frame(wire.Refused(encode_error(told), True)))
            return
        if begin.source is not None:
            self._orders.sendall(wire.frame(wire.Loaded()))
        room = self._rooms[begin.handler]
        room.queue, room.ahead = begin.queue, begin.now - monotonic() * 1000
        self._host(room, begin)

    def _load(self, source: wire.Source) -> Room:
        setup = self._setup
        for module in setup.modules:
            importlib.import_module(module)
        registry, handler = load_handler(source, setup.main)
        if not self._entered and setup.lifespan is not None:
            self._state = self._enter(load_function(setup.lifespan, setup.main))
        self._entered = True
        if registry not in self._states:
            self._states[registry] = self._enter(registry.lifespan)
        own = self._states[registry]
        return Room(self, Plan(handler, {}), self._state if own is None else own)

    def _enter(self, lifespan: Any) -> Any:
        return self._runner.run(enter(self._stack, lifespan))

    def _host(self, room: Room, begin: wire.Begin) -> None:
        at = read_head(begin.record)[1]
        plan = room.plan
        rules = _rules(begin.terms, plan)
        run = Run(begin.id, begin.lease, begin.record, begin.counts)
        guest = Guest(room, begin.worker, run, plan, rules, at)
        guest.child, guest.looked, guest.told = self, False, False
        self._guest = guest
        try:
            # What a handler sets in its context is gone for the next.
            result = contextvars.copy_context().run(self._call, guest)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises, SystemExit too, ends its run only
            outcome = guest.raised(error)
        else:
            outcome = guest.returned(result)
        self.end(guest, outcome)

    def _call(self, guest: Guest) -> Any:
        current.set(guest)
        if guest.plan.is_async:
            return self._runner.run(guest.call(), context=contextvars.copy_context())
        return guest.call()

    def _is_spent(self) -> bool:
        setup = self._setup
        if setup.max_jobs is not None and self._done >= setup.max_jobs:
            return True
        return setup.max_rss is not None and used_memory() > setup.max_rss


def _rules(terms: wire.Terms, plan: Plan) -> Rules:
    chooser = plan.rules.chooser if terms.chosen else None
    return Rules(terms.retries, read_backoff(terms.backoff), chooser, terms.timeout, terms.max_logs)


def used_memory() -> int:
    """Bytes of memory that this process has now; where the system does not say, its peak."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return int(pages) * resource.getpagesize()


def die_with_parent(parent: int) -> None:
    """From here on the end of the worker is the end of this process, also in the midst of native code (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(orders: int, control: int, parent: int) -> None:
    """The program of a child."""
    die_with_parent(parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        # They are for the worker, which tells when to end; what a handler starts is not to ignore them, though.
        signal.signal(number, _leave_to_worker)
    for end in (orders, control):
        os.set_inheritable(end, False)
    child = Child(socket.socket(fileno=orders), socket.socket(fileno=control))
    threading.Thread(target=child.listen, name="skep-control", daemon=True).start()
    child.run()


def _leave_to_worker(number: int, frame: object) -> None:
    """Nothing is done."""
