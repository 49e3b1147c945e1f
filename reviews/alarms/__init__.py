"""Standing alarms: what went against a promise stands until somebody has dealt with it
(gate.md section 7). One open alarm for each kind and subject, however often it is seen.
"""

from __future__ import annotations

from .answering import acknowledge, check_may_answer, close
from .dropping import dropped
from .noticing import (
    about,
    counted,
    refused,
    succeeded,
    unsaid_without_votes,
    without_votes,
)
from .raising import close_itself, raise_
from .reporting import keep, repeats, said_done, says_it_happened, unanswered
from .watching import watch

__all__ = [
    "about",
    "acknowledge",
    "check_may_answer",
    "close",
    "close_itself",
    "counted",
    "dropped",
    "keep",
    "raise_",
    "refused",
    "repeats",
    "said_done",
    "says_it_happened",
    "succeeded",
    "unanswered",
    "unsaid_without_votes",
    "watch",
    "without_votes",
]
