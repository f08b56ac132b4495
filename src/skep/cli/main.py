"""The command `skep`: its parser, and who does what."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from skep.errors import SkepError


def parser() -> argparse.ArgumentParser:
    """All commands that work."""
    from skep.cli import worker

    top = argparse.ArgumentParser(prog="skep", description="A job queue whose history is a table.")
    top.add_argument("--version", action="version", version=f"skep {version('skep')}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    work = verbs.add_parser("worker", help="run jobs", description="Runs the jobs of queues until SIGTERM or SIGINT.")
    worker.add_arguments(work)
    work.set_defaults(run=worker.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 not done, 2 wrong usage."""
    args = parser().parse_args(argv)
    args.argv = sys.argv[1:] if argv is None else list(argv)
    try:
        code: int = args.run(args)
    except SkepError as error:
        print(f"skep: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
