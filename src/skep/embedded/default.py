"""Which server a queue without a url uses, and whether it may be the embedded one."""

from __future__ import annotations

import os
import sys

from skep.errors import NoEmbeddedServer

EMBEDDED = "embedded://"


class _Redirected:
    url: str | None = None


def redirect(url: str | None) -> None:
    """Send every queue without a url of this process to `url`, before SKEP_URL; None ends it. For tests."""
    _Redirected.url = url


def redirected() -> str | None:
    """Where queues without a url are sent by `redirect`, if they are."""
    return _Redirected.url


def default_url() -> str:
    """The url of a queue that was given none: what `redirect` said, else SKEP_URL, else `embedded://`."""
    return _Redirected.url or os.environ.get("SKEP_URL") or EMBEDDED


def check_allowed(url: str) -> None:
    """Refuse an embedded server where SKEP_EMBEDDED=0 forbids it, and a developer's own one under pytest."""
    if os.environ.get("SKEP_EMBEDDED", "").lower() in {"0", "no", "off", "false"}:
        raise NoEmbeddedServer(
            f"{url} is forbidden here by SKEP_EMBEDDED={os.environ['SKEP_EMBEDDED']}:"
            " set SKEP_URL to a server, such as redis://localhost:6379/0"
        )
    if url == EMBEDDED and under_pytest():
        raise NoEmbeddedServer(
            f"{url} holds a developer's jobs, which tests never touch: take the fixture `skep_url`"
            ' (pytest_plugins = ["skep.testing.fixtures"]), or set SKEP_URL, or name a folder: embedded:///folder'
        )


def under_pytest() -> bool:
    """Whether this process runs tests, or was started by one that does."""
    return "pytest" in sys.modules or not os.environ.keys().isdisjoint({"PYTEST_CURRENT_TEST", "PYTEST_VERSION"})
