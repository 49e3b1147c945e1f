"""What a run leaves behind for the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .agents import Notebook
from .nemesis import Arsenal


@dataclass
class Ran:
    """What a run leaves to be looked at. Times are of the clock on the wall."""

    began: float
    loaded: float  # the last fault was done
    ended: float
    notebook: Notebook
    arsenal: Arsenal
    restarts: dict[str, int]
    left: dict[str, int] = field(default_factory=dict)  # what was still to come
    extra: dict[str, Any] = field(default_factory=dict)
