"""Tools for tests of programs that use skep: real servers, and fixtures in `skep.testing.fixtures`."""

from __future__ import annotations

from skep.testing.added import assert_added
from skep.testing.clock import GivenClock
from skep.testing.draining import Run, drain
from skep.testing.given import GivenJob, job
from skep.testing.server import Server

__all__ = ["Server", "GivenClock", "drain", "Run", "job", "GivenJob", "assert_added"]
