"""What an option is that nobody has named: `None` would mean that there is to be none."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias


class _Unset(Enum):
    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = _Unset.UNSET
"""Not named: the next one who may say it does."""

Unset: TypeAlias = Literal[_Unset.UNSET]
