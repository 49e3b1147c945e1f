"""Standing alarms: what went against a promise stands until somebody has dealt with it
(gate.md section 7). One open alarm for each kind and subject, however often it is seen.
"""

from __future__ import annotations

from .answering import acknowledge, check_may_answer, close
from .noticing import refused
from .raising import close_itself, raise_

__all__ = [
    "acknowledge",
    "check_may_answer",
    "close",
    "close_itself",
    "raise_",
    "refused",
]
