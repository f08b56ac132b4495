"""The command `skep`: its parser, and who does what."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

from skep.cli import output
from skep.errors import InvalidData, InvalidOption, SkepError


class Verb(NamedTuple):
    """A command: the module with its `add_arguments` and `run`, and what it does."""

    module: str
    help: str


VERBS = {
    "worker": Verb("worker", "run jobs until SIGTERM or SIGINT"),
    "add": Verb("add", "add a job"),
    "queues": Verb("queues", "list queues, with how many jobs stand where"),
    "jobs": Verb("jobs", "list jobs of a queue"),
    "job": Verb("job", "tell all of one job"),
    "cancel": Verb("steer", "cancel jobs, or ask their runs to stop"),
    "retry": Verb("steer", "run finished jobs again"),
    "remove": Verb("steer", "take jobs away, unless they run"),
    "hold": Verb("steer", "set waiting jobs aside"),
    "release": Verb("steer", "let held jobs go on"),
    "promote": Verb("steer", "let jobs that wait for their time run now"),
    "pause": Verb("pause", "let no worker take jobs of a queue"),
    "resume": Verb("pause", "let workers take jobs again"),
    "doctor": Verb("doctor", "look whether the server is one to trust jobs to"),
}


def parser() -> argparse.ArgumentParser:
    """All commands that work."""
    top = argparse.ArgumentParser(
        prog="skep",
        description="A job queue whose history is a table.",
        epilog="Exit codes: 0 done, 1 not done, 2 wrong usage. `skep VERB --help` tells more of each.",
    )
    top.add_argument("--version", action="version", version=f"skep {version('skep')}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, verb in VERBS.items():
        module = import_module(f"skep.cli.{verb.module}")
        described = f"{verb.help[0].upper()}{verb.help[1:]}."
        each = verbs.add_parser(name, help=verb.help, description=described)
        module.add_arguments(each)
        each.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 not done, 2 wrong usage."""
    output.prepare()
    args = parser().parse_args(argv)
    args.argv = sys.argv[1:] if argv is None else list(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:
        output.abandon()
        return 1
    except SkepError as error:
        output.complain(str(error))
        return 2 if isinstance(error, InvalidOption | InvalidData) else 1
    return code


if __name__ == "__main__":
    sys.exit(main())
