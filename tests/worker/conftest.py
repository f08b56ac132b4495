from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.served import Served

_numbers = count()


@pytest.fixture
def queue(skep_url: str) -> Iterator[Served]:
    made = Served(f"mail{next(_numbers)}", skep_url)
    yield made
    made.store.close()
