"""The three jobs every peer runs, in a plain and an async form."""

import asyncio
import time

import probe


def noop(x, y):
    probe.tick()
    return x + y


def late(due):
    probe.late(due)
    return 0


def crash(i, secs):
    probe.line("crash.log", f"start {i} {time.time()}")
    time.sleep(secs)
    probe.line("crash.log", f"end {i} {time.time()}")
    return i


async def anoop(x, y):
    probe.tick()
    return x + y


async def alate(due):
    probe.late(due)
    return 0


async def acrash(i, secs):
    probe.line("crash.log", f"start {i} {time.time()}")
    await asyncio.sleep(secs)
    probe.line("crash.log", f"end {i} {time.time()}")
    return i
