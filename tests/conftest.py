from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["skep.testing.fixtures"]

# On a shared machine an example may take long for no reason of its own; a test has its time limit anyway.
settings.register_profile("skep", deadline=None, print_blob=True)
settings.load_profile("skep")
