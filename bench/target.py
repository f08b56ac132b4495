"""Targets: what must be reached, what was measured, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SCALE, LARGEST_SCALE = 0.25, 1.5


def capped(scale: float) -> float:
    """A machine that is very slow or very fast moves no target without bounds."""
    return min(LARGEST_SCALE, max(LEAST_SCALE, scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One line of the table. `goal` holds where the anchors are at their references; `scale` is how fast it is here."""

    part: str
    name: str
    goal: float
    unit: str
    value: float | None
    at_most: bool = False
    scale: float = 1.0
    scaled_by: str = ""
    note: str = ""

    @property
    def limit(self) -> float:
        """The goal on this machine, now."""
        return self.goal / self.scale if self.at_most else self.goal * self.scale

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "to come"
        reached = self.value <= self.limit if self.at_most else self.value >= self.limit
        return "PASS" if reached else "SHORT"

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        """Name, measured, limit, goal and what scales it, verdict, note."""
        sign = "<=" if self.at_most else ">="
        measured = "-" if self.value is None else f"{figure(self.value)} {self.unit}"
        goal = f"{sign} {figure(self.goal)}"
        if self.scaled_by:
            goal += f", scale {self.scale:.2f} ({self.scaled_by})"
        return self.name, measured, f"{sign} {figure(self.limit)}", goal, self.verdict, self.note


def figure(value: float) -> str:
    """As many digits as mean something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
