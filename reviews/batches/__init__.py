"""What people do with a batch: decide exactly the ordered list that they saw, or none
of it; recall it; and let what is left of it run (gate.md section 6)."""

from __future__ import annotations

from .deciding import decide
from .recalling import recall_all
from .retrying import retry_failed, run_rest
from .said import SaidOfMany

__all__ = ["SaidOfMany", "decide", "recall_all", "retry_failed", "run_rest"]
