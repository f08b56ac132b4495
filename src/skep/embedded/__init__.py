"""A real server that starts by itself, is shared by all that runs in a project, and ends after the last."""

from __future__ import annotations

from skep.embedded.default import check_allowed, default_url, redirect, redirected, under_pytest
from skep.embedded.folder import running
from skep.embedded.join import connect_path
from skep.embedded.keeper import Running
from skep.embedded.place import folder_of, place, url_of
from skep.embedded.server import find_binary

__all__ = [
    "connect_path",
    "default_url",
    "redirect",
    "redirected",
    "check_allowed",
    "under_pytest",
    "place",
    "folder_of",
    "url_of",
    "running",
    "Running",
    "find_binary",
]
