"""From a grant to one effect: claim, re-check, perform, record (gate.md section 7)."""

from __future__ import annotations

from .looking import ask_first, denies, may_repeat
from .recording import count_found, keep_found, keep_late, record
from .refusing import give_back, refuse
from .results import kept, redacted, result_of
from .running import note_outside, run

__all__ = [
    "ask_first",
    "count_found",
    "denies",
    "give_back",
    "keep_found",
    "keep_late",
    "kept",
    "may_repeat",
    "note_outside",
    "record",
    "redacted",
    "refuse",
    "result_of",
    "run",
]
