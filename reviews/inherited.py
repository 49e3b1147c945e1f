"""What came back with a backup (proof.md T25). It may have run in the history that is
lost, so nothing of it is ever called untouched, refused or lost: only unknown."""

from __future__ import annotations

from datetime import datetime

from journal import epochs, log
from policies import tools

from . import transitions, turns
from .choices import GrantStatus
from .models import Execution

RESTORED = log.Actor("system", "restore")
CODE = "restored"
DETAIL = "The database was restored: it may have run already."


def is_inherited(execution: Execution) -> bool:
    """Whether its proposal was made before the present epoch began."""
    return epochs.inherited(execution.proposal.created_at)


def doubt(execution: Execution, now: datetime) -> None:
    """UNKNOWN without an attempt: whoever can say what became of it is asked.

    Caller holds the execution's lock; it is QUEUED or CLAIMED.
    """
    grant = execution.grant
    if grant.status == GrantStatus.LIVE:
        transitions.grant.apply(grant, "spend", actor=RESTORED, now=now)
    said = {"execution": execution.pk, "code": CODE}
    if execution.status == "queued":
        transitions.execution.apply(
            execution,
            "claim",
            actor=RESTORED,
            now=now,
            changes={"fence": execution.fence + 1, "lease_until": now},
            data=said,
        )
    looked_up = tools.definition(grant.revision.known_tool).look_up is not None
    transitions.execution.apply(
        execution,
        "lose",
        actor=RESTORED,
        now=now,
        changes={
            "lease_until": None,
            "code": CODE,
            "detail": DETAIL,
            "unknown_at": now,
            "ask_at": now if looked_up else None,
        },
        data={**said, "fence": execution.fence},
    )
    turns.halt(execution, now)
