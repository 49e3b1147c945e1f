"""What a task costs in strokes and clicks, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.journeys.desk.hands import Way
from tests.journeys.desk.sitting import Sitting

# Task -> at most so many strokes and clicks, typing and reading apart; None: no bar.
BARS: dict[str, tuple[int | None, int | None]] = {
    "Open next item from anywhere": (2, 2),
    "Approve Low/Medium": (2, 2),
    "Approve High with micro-check": (3, 3),
    "Reject with preset reason": (3, 3),
    "Modify one field and approve": (3, 4),
    "Escalate with preset": (3, 3),
    "Decide a 50-item batch incl. 5 samples": (16, 14),
    "Stop a run from any page": (3, 3),
    "Find a decision from last month (audit)": (None, 4),
    "Notification link to verbs visible": (None, 1),
}


@dataclass
class Costs:
    """Measured by one test; printed with the others' at the end of the run."""

    properties: list[tuple[str, object]]
    record: Callable[[str, str], None]

    @contextmanager
    def of(self, task: str, desk: Sitting) -> Iterator[None]:
        """Count one task from here to the end of the block, and hold it to its bar."""
        desk.hand.count()
        yield
        strokes, clicks = desk.hand.count()
        keys = desk.way is Way.KEYBOARD
        most = BARS[task][0 if keys else 1]
        cost, unit = (strokes, "strokes") if keys else (clicks, "clicks")
        self.properties.append(("cost", (task, unit, cost, most)))
        self.record("6.1", said(task, unit, cost, most))
        assert most is None or cost <= most, f"{task}: {cost} {unit}, at most {most}"


def said(task: str, unit: str, cost: int, most: int | None) -> str:
    """One line of the table."""
    bar = "no bar" if most is None else f"at most {most}"
    return f"{task}: {cost} {unit}, {bar}"
