"""Batches form by themselves: alike requests that come within a bounded window, or that
the agent says belong to one task. Nothing here decides anything (gate.md 6)."""

from __future__ import annotations

from .gathering import form_all, form_around
from .loose import WINDOW
from .tidying import free_recalled, tidy, tidy_all

__all__ = [
    "WINDOW",
    "form_all",
    "form_around",
    "free_recalled",
    "tidy",
    "tidy_all",
]
