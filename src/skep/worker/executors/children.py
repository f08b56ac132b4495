"""A child process as its worker sees it: started, told of a run, heard, killed, collected."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Protocol

from skep.core.job import JobError
from skep.worker.attempt import Attempt
from skep.worker.executors import wire
from skep.worker.executors.death import describe_death, oom_kills

PROGRAM = """
import sys, json
orders, control, parent, path = json.loads(sys.argv[1])
sys.path[:] = path
from skep.worker.executors.child import main
main(orders, control, parent)
"""
READ = 1 << 18

DISMISSAL = 10.0
"""Seconds that a child which is no longer needed has for the end of its lifespan."""

LOOK = 0.005
"""Seconds between two looks at whether a process has ended that has closed its socket."""
LOOKS = 200
"""So many looks later it is killed."""


class Owner(Protocol):
    """Who is told of a child."""

    def heard(self, child: Child, report: wire.Report) -> None:
        """It has told this."""
        ...

    def died(self, child: Child, cause: JobError) -> None:
        """It has ended, and was collected."""
        ...


class Child:
    """One process. `attempt`: what runs in it; `known`: the handlers that it has loaded, by their numbers."""

    def __init__(self, owner: Owner, setup: wire.Setup) -> None:
        self.attempt: Attempt | None = None
        self.number = 0
        self.known: set[int] = set()
        self.was_ready = False
        self.patient = False
        self.doomed = False
        self.killing: asyncio.TimerHandle | None = None
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._oom_before = oom_kills()
        self._heard = bytearray()
        self._unsent = bytearray()
        self._looks = 0
        self._orders, self._control, self._process = _start(setup.path)
        self._end = self._orders.fileno()
        self._loop.add_reader(self._end, self._read)
        self.send(setup)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def send(self, order: wire.Order) -> None:
        """Tells it something: at once, or as soon as it takes it."""
        text = wire.frame(order)
        if not self._unsent:
            try:
                sent = self._orders.send(text)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # it has died: its reader will see that
            if sent == len(text):
                return
            text = text[sent:]
            self._loop.add_writer(self._end, self._write)
        self._unsent += text

    def tell_to_stop(self, cause: str) -> None:
        """Tells its run to end."""
        # A socket that is full or broken is that of a child which will be killed anyway.
        with contextlib.suppress(OSError):
            self._control.send(wire.frame(wire.Stop(self.number, cause)))

    def kill(self) -> None:
        """Ends it, whatever it does."""
        self.doomed = True
        if self._process.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def dismiss(self) -> None:
        """It ends by itself, once its lifespan is over: it gets no more runs."""
        with contextlib.suppress(OSError):
            self._orders.shutdown(socket.SHUT_WR)
        if self.killing is None:
            self.killing = self._loop.call_later(DISMISSAL, self.kill)

    def collect(self, *, wait: bool) -> JobError | None:
        """Why it has ended; None: it has not yet."""
        try:
            pid, status, used = os.wait4(self.pid, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            # The code around the worker waits for all children of its process.
            self._process.returncode = 0
            self._close()
            return JobError(
                type="ProcessDied", message="its process ended; other code has taken its cause", kind="stall"
            )
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._close()
        return describe_death(status, used.ru_maxrss, self._oom_before)

    def _write(self) -> None:
        try:
            del self._unsent[: self._orders.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._end)

    def _read(self) -> None:
        try:
            more = self._orders.recv(READ)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._loop.remove_reader(self._end)
            self._look()
            return
        self._heard += more
        for text in wire.frames(self._heard):
            self._owner.heard(self, wire.read_report(text))

    def _look(self) -> None:
        if self._process.returncode is not None:
            return
        cause = self.collect(wait=False)
        if cause is not None:
            self._owner.died(self, cause)
            return
        self._looks += 1
        if self._looks == LOOKS:
            self.kill()
        self._loop.call_later(LOOK, self._look)

    def _close(self) -> None:
        if self.killing is not None:
            self.killing.cancel()
        self._loop.remove_reader(self._end)
        self._loop.remove_writer(self._end)
        self._orders.close()
        self._control.close()


def _start(path: list[str]) -> tuple[socket.socket, socket.socket, subprocess.Popen[bytes]]:
    orders, its_orders = socket.socketpair()
    control, its_control = socket.socketpair()
    orders.setblocking(False)
    control.setblocking(False)
    ends = its_orders.fileno(), its_control.fileno()
    words = json.dumps([*ends, os.getpid(), path])
    with its_orders, its_control:
        command = [sys.executable, "-c", PROGRAM, words]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=ends)
    return orders, control, process
