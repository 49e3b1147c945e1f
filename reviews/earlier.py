"""What may have happened before an attempt begins: in an attempt before it, or in the
history that was lost with a restore."""

from __future__ import annotations

from policies.choices import ExecutionClass

from . import inherited
from .alarms import late_reports
from .grants import approved_tool, uncertain
from .grants.uncertain import Doubt
from .models import Execution


def doubt(execution: Execution) -> Doubt | None:
    """Why this may have happened already, where neither a look-up by its key nor its
    provider's memory of that would tell. Caller holds the execution's lock."""
    late = execution.attempts > 0 and _is_blind(execution)
    if late and late_reports.says_it_happened(execution):  # guard: late-report
        return uncertain.REPORTED
    return _inherited(execution)


def _inherited(execution: Execution) -> Doubt | None:
    opaque = approved_tool.class_of(execution) is ExecutionClass.OPAQUE
    if not opaque and execution.grant.revision.number == 1:
        return None  # its own key tells, without a look at the epochs
    found = uncertain.of_restore(execution)
    return found if opaque or found is uncertain.OTHER_VERSION else None


def is_untouched(execution: Execution) -> bool:
    """What was unknown once, or said too late to have been done, may have happened,
    whatever was said of it later: where somebody can look, they look before it is
    repeated."""
    doubted = execution.unknown_at is not None or _is_said_done(execution)
    can_look = approved_tool.can_be_asked(execution)
    # guard: unknown-once
    return not (doubted and can_look) and not inherited.is_inherited(execution)


def _is_said_done(execution: Execution) -> bool:
    if execution.attempts <= 1:
        return False
    return late_reports.said_done(execution).exists()


def _is_blind(execution: Execution) -> bool:
    """Whether neither its service can be asked nor its provider knows our key."""
    keyed = approved_tool.class_of(execution) is ExecutionClass.KEYED
    return not keyed and not approved_tool.can_be_asked(execution)
