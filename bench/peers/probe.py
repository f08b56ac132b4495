"""What a job does in the benchmark: count itself and note the time, cheaply.

Each worker process owns one 24-byte file in $BENCH_PROBE: <count, first, last>.
The runner reads those files; nothing goes through the server under test.
"""

import mmap
import os
import struct
import threading
import time

DIR = os.environ.get("BENCH_PROBE", "")
SHARED = os.environ.get("BENCH_PROBE_INHERIT") == "1"  # for workers that fork once per job
_S = struct.Struct("<qdd")
_lock = threading.Lock()
_map = None
_n = 0
_first = 0.0


def _open():
    global _map, _n, _first
    path = os.path.join(DIR, f"{os.getpid()}.cnt")
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, _S.size)
    _map = mmap.mmap(fd, _S.size)
    os.close(fd)
    _n, _first = 0, 0.0


def prepare():
    if _map is None:
        _open()


def _after_fork():
    global _map, _lock
    _lock = threading.Lock()
    if not SHARED:
        _map = None


os.register_at_fork(after_in_child=_after_fork)


def tick():
    global _n, _first
    now = time.time()
    with _lock:
        if _map is None:
            _open()
        if SHARED:
            _n, _first, _ = _S.unpack_from(_map)
        if not _n:
            _first = now
        _n += 1
        _S.pack_into(_map, 0, _n, _first, now)


def line(name, text):
    fd = os.open(os.path.join(DIR, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (text + "\n").encode())
    os.close(fd)


def late(due):
    line("late.log", repr(time.time() - due))
    tick()
