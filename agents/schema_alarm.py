"""The alarm for an answer that violates the published schema. The agent does not get
such an answer; a person must look."""

from __future__ import annotations

import structlog

from journal import clock
from journal.errors import InvalidOutcome
from journal.operations import operation
from reviews.alarms import standing
from reviews.choices import AlarmKind
from reviews.models import Proposal

logger = structlog.get_logger(__name__)


@operation(locks="alarm", writes="Alarm", logs="alarm.raised", after="mail, wake-up")
def raise_schema_alarm(*, error: InvalidOutcome, reference: str) -> None:
    """Raise one alarm for each proposal, with the reference that the agent got in its
    error."""
    logger.error("outcome_unfit", proposal=error.proposal, places=error.places)
    standing.raise_alarm(
        AlarmKind.INVALID_OUTCOME,
        subject=error.proposal,
        proposal=Proposal.objects.filter(pk=error.proposal).first(),
        data={"reference": reference, "places": ", ".join(error.places)[:200]},
        now=clock.now(),
    )
