"""Who is at a request: five minutes, taken by opening it, renewed while somebody is
there, given back on leaving. A lease spares people each other's work; it is never an
authority, and every one of them ends (ux.md 0.4)."""

from __future__ import annotations

from .checking import check, was_broken
from .ending import lapse_chunk, let_go, release, settle
from .passing import ask, break_hold, hand_over
from .rows import is_held
from .taking import LEASE, MAX_LEASES, Hold, hold, renew, take, take_first

__all__ = [
    "LEASE",
    "MAX_LEASES",
    "Hold",
    "ask",
    "break_hold",
    "check",
    "hand_over",
    "hold",
    "is_held",
    "lapse_chunk",
    "let_go",
    "release",
    "renew",
    "settle",
    "take",
    "take_first",
    "was_broken",
]
