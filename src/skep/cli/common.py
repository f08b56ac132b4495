"""What commands share: where the server is, how the output looks, and which jobs are meant."""

from __future__ import annotations

import argparse
from typing import Any

from skep.queue import Queue


def add_common(parser: argparse.ArgumentParser) -> None:
    """`--url` and `--json`, which every command has."""
    parser.add_argument("--url", help="where the server is (SKEP_URL, else the embedded server of this project)")
    parser.add_argument("--json", action="store_true", help="write JSON, a value a line")


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which jobs are meant."""
    parser.add_argument("--status", help="only those of this status, such as failed")
    parser.add_argument("--name", help="only those with this label")
    parser.add_argument("--task", help="only those of this task")


def filters(args: argparse.Namespace) -> dict[str, Any]:
    """The filters that were named."""
    names = ("status", "name", "task", "older_than")
    return {name: getattr(args, name) for name in names if getattr(args, name, None) is not None}


def queue_of(args: argparse.Namespace) -> Queue:
    """The queue that the command names."""
    return Queue(args.queue, args.url)
