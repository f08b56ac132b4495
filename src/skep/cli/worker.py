"""`skep worker`: serves queues until it is told to stop."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from dataclasses import replace
from typing import Any

from skep.cli import target

MOST_PROCESSES = 1000
DEFAULT_GRACE = 25.0
LEVELS = ("debug", "info", "warning", "error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "targets", nargs="+", metavar="TARGET", help="module:attribute of a queue, a worker, or a list of them"
    )
    parser.add_argument("--concurrency", type=int, metavar="N", help="so many runs at once (10)")
    parser.add_argument("--processes", type=_processes, default=1, metavar="N", help="so many worker processes (1)")
    parser.add_argument("--executor", choices=("thread", "process"), help="where handlers run (thread)")
    parser.add_argument(
        "--lease", type=float, metavar="S", help="seconds after which a silent worker counts as dead (30)"
    )
    parser.add_argument("--grace", type=float, metavar="S", help="seconds for which runs may finish at a stop (25)")
    parser.add_argument("--burst", action="store_true", help="end when nothing is waiting, active or retrying")
    parser.add_argument("--url", help="where the server is, for queues that do not say it (SKEP_URL)")
    parser.add_argument(
        "--import", dest="imports", action="append", default=[], metavar="MODULE", help="a module with handlers, too"
    )
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="what is logged at least (info)")


def _processes(text: str) -> int:
    number = int(text)
    if not 0 < number <= MOST_PROCESSES:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST_PROCESSES}")
    return number


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, or until a burst is over: as the supervisor, or as one of its children."""
    logging.basicConfig(level=args.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    from skep.worker.supervisor import Supervisor
    from skep.worker.tether import VARIABLE

    if VARIABLE in os.environ:
        load(args).run()
        return 0
    command = [sys.executable, "-m", "skep.cli.main", *args.argv]
    return Supervisor(command, args.processes, DEFAULT_GRACE if args.grace is None else args.grace).run()


def load(args: argparse.Namespace) -> Any:
    """The worker of all targets, with the options of the command line."""
    if args.url:
        os.environ["SKEP_URL"] = args.url
    target.add_working_directory()
    for name in args.imports:
        importlib.import_module(name)
    found = [each for name in args.targets for each in target.load(name)]
    return assemble(found, args)


def assemble(found: list[Any], args: argparse.Namespace) -> Any:
    """One worker for all: the first that was named, or a new one. The command line's word goes before its own."""
    from skep.worker.worker import Worker

    workers = [each for each in found if isinstance(each, Worker)]
    named = [queue for each in found for queue in (each.queues if isinstance(each, Worker) else (each,))]
    queues = tuple(dict.fromkeys(named))
    worker = workers[0] if workers else Worker(*queues)
    worker.queues = queues
    said = {
        name: getattr(args, name)
        for name in ("concurrency", "executor", "lease", "grace")
        if getattr(args, name) is not None
    }
    # Child processes import what this process has imported.
    modules = tuple(dict.fromkeys([*args.imports, *(name.partition(":")[0] for name in args.targets)]))
    worker.options = replace(worker.options, **said, burst=args.burst or worker.options.burst, modules=modules)
    return worker
