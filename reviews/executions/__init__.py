"""From a grant to one effect: claim, re-check, perform, record (gate.md section 7)."""

from __future__ import annotations

from .recording import keep_found, keep_late, record
from .refusing import give_back, refuse
from .results import kept, redacted, result_of
from .running import note_outside, run

__all__ = [
    "give_back",
    "keep_found",
    "keep_late",
    "kept",
    "note_outside",
    "record",
    "redacted",
    "refuse",
    "result_of",
    "run",
]
