"""The parent of worker processes. It imports no user code: nothing that kills a worker kills it.

It passes signals on, replaces workers that die, hands back the runs of a dead one at once, and its own death ends them.
As the first process of a container it also collects the processes that others have left behind.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Sequence
from time import monotonic

import msgspec

from skep.errors import SkepError
from skep.store.sync import Store
from skep.worker.leaving import leave
from skep.worker.tether import VARIABLE, Post, read_post

log = logging.getLogger("skep.supervisor")

STOPPING = (signal.SIGTERM, signal.SIGINT)

SHORT_LIFE = 5.0
"""Seconds: a worker that dies sooner is replaced after a rest that doubles, up to the longest."""
FIRST_REST, LONGEST_REST = 0.1, 5.0

EXTRA = 15.0
"""Seconds beyond the grace after which a stopping worker is killed."""
HURRY = 10.0
"""Seconds after a second signal after which it is killed."""

READ = 65_536


class Child:
    """A worker process, and the registrations it has told of."""

    def __init__(self, command: Sequence[str]) -> None:
        alive, self._alive = os.pipe()
        self.reports, report = os.pipe()
        os.set_blocking(self.reports, False)
        try:
            self.process = subprocess.Popen(
                command,
                env=os.environ | {VARIABLE: f"{alive},{report}"},
                pass_fds=(alive, report),
                # A signal from the keyboard is for the supervisor, which passes it on once.
                process_group=0,
            )
        finally:
            os.close(alive)
            os.close(report)
        self.pid = self.process.pid
        self.began = monotonic()
        self.posts: dict[str, Post] = {}
        self.was_ready = False
        self._heard = b""

    def listen(self) -> None:
        """Takes in what it has told."""
        try:
            self._heard += os.read(self.reports, READ)
        except (BlockingIOError, OSError):
            return
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            try:
                self._note(read_post(line))
            except msgspec.DecodeError:
                log.warning("worker %d told %r, which is no registration", self.pid, line[:200])

    def send(self, number: int) -> None:
        """Sends it a signal."""
        if self.process.returncode is None:
            os.kill(self.pid, number)

    def ended(self, code: int) -> None:
        """It has ended."""
        self.process.returncode = code
        self.listen()
        os.close(self.reports)
        os.close(self._alive)

    def _note(self, post: Post) -> None:
        self.was_ready = True
        if post.left:
            self.posts.pop(post.worker, None)
        else:
            self.posts[post.worker] = post


class Supervisor:
    """Runs `command` in so many processes until it is told to stop, or they have ended by themselves."""

    def __init__(self, command: Sequence[str], processes: int, grace: float) -> None:
        self._command = command
        self._processes = processes
        self._grace = grace
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._asked = 0  # how often it was told to stop
        self._passed_on = 0
        self._kill_at: float | None = None
        self._start_at: list[float] = []
        self._rest = FIRST_REST
        self._code = 0
        self._handing_back: list[threading.Thread] = []

    def run(self) -> int:
        """The exit code: 0 after a signal or a finished burst, else that of a worker that could not begin."""
        self._catch_signals()
        try:
            for _ in range(self._processes):
                self._start()
            while self._children or self._start_at:
                self._turn()
        finally:
            for child in self._children.values():
                child.send(signal.SIGKILL)
            for thread in self._handing_back:
                thread.join(EXTRA)
        return self._code

    def _catch_signals(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        self._selector.register(woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*STOPPING, signal.SIGCHLD):
            signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        if number in STOPPING:
            self._asked += 1

    def _turn(self) -> None:
        """Waits for a signal, a report, a death or the next thing to do, and does what there is to do."""
        for key, _ in self._selector.select(self._patience()):
            if isinstance(key.data, Child):
                key.data.listen()
            else:
                os.read(key.fd, READ)
        while self._passed_on < self._asked:
            self._pass_on()
        self._collect()
        now = monotonic()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill()
        for at in [at for at in self._start_at if at <= now]:
            self._start_at.remove(at)
            self._start()

    def _patience(self) -> float | None:
        times = [*self._start_at, *([self._kill_at] if self._kill_at is not None else [])]
        return max(0.0, min(times) - monotonic()) if times else None

    def _start(self) -> None:
        child = Child(self._command)
        self._children[child.pid] = child
        self._selector.register(child.reports, selectors.EVENT_READ, child)

    def _pass_on(self) -> None:
        """The first signal lets runs finish, the second does not."""
        self._passed_on += 1
        self._start_at.clear()
        self._kill_at = monotonic() + (self._grace + EXTRA if self._passed_on == 1 else HURRY)
        for child in self._children.values():
            child.send(signal.SIGTERM)

    def _kill(self) -> None:
        self._kill_at = None
        for child in self._children.values():
            log.error("worker %d does not end: it is killed", child.pid)
            child.send(signal.SIGKILL)

    def _collect(self) -> None:
        """Processes that have ended: our own, and as the first process of a container those that nobody waits for."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._selector.unregister(child.reports)
                child.ended(os.waitstatus_to_exitcode(status))
                self._after(child)

    def _after(self, child: Child) -> None:
        code = child.process.returncode
        stopping = self._asked > 0
        if child.posts:
            thread = threading.Thread(target=hand_back, args=(list(child.posts.values()), not stopping))
            thread.start()
            self._handing_back.append(thread)
        if stopping or code == 0:
            return
        if code > 0 and not child.was_ready:
            # It could not even begin, and neither would another one.
            self._code = code
            self._asked += 1
            self._pass_on()
            return
        lived = monotonic() - child.began
        self._rest = FIRST_REST if lived > SHORT_LIFE else min(LONGEST_REST, self._rest * 2)
        log.error("worker %d died (%s): it is replaced", child.pid, _cause(code))
        self._start_at.append(monotonic() + self._rest)


def hand_back(posts: Sequence[Post], died: bool) -> None:
    """What these registrations still held waits again: stalled where the process died, returned where it was to end."""
    for post in posts:
        store = Store(post.connection)
        try:
            store.run(leave(post.keys, post.worker, died=died))
        except SkepError as error:
            log.warning("%s: the runs of %s wait for the end of its lease: %s", post.queue, post.worker, error)
        finally:
            store.close()


def _cause(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
