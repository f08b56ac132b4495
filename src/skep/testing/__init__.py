"""Tools for tests of programs that use skep: real servers, and fixtures in `skep.testing.fixtures`."""

from __future__ import annotations

from skep.testing.server import Server

__all__ = ["Server"]
