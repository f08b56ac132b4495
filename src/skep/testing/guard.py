"""Runs one server for the process that holds the other end of this one's standard input, and no longer.

`Server` runs this file as a script. A pipe tells of the owner's death, whatever it died of, on every system;
and unlike the kernel's signal at a parent's death it does not mistake the end of a thread for it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys


def main(folder: str, command: list[str]) -> None:
    """Run the command and print its pid. If the owner goes first, kill it and remove `folder` ("": none)."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _look)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    os.write(1, f"{server.pid}\n".encode())
    # Nothing is ever written to standard input: it can be read once it has ended. A signal asks to look, too.
    while 0 not in select.select([0, woken], [], [])[0] and server.poll() is None:
        if set(os.read(woken, 64)) != {signal.SIGCHLD}:
            break
        # The server was stopped, or goes on: that is told in the same way as its end.
    if server.poll() is None:
        server.kill()
        server.wait()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _look(*_: object) -> None:
    """To be woken is all."""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
