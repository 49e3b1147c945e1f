"""The groups of scenes, in the order in which they are tested: long ones first."""

from __future__ import annotations

from . import (
    account,
    agents,
    assurance,
    datasets,
    decisions,
    lists,
    log,
    outcomes,
    review,
    statistics,
    stops,
)

GROUPS = [
    review.WAITING,
    decisions.REFUSED,
    outcomes.OVER,
    decisions.ARMED,
    lists.BATCHES,
    lists.UNDOING,
    lists.LISTS,
    lists.EMPTY,
    lists.CROWD,
    statistics.STATISTICS,
    statistics.NO_STATISTICS,
    assurance.ASSURANCE,
    datasets.DATASETS,
    log.RECORDS,
    stops.UP,
    stops.STANDING,
    stops.STOPS,
    stops.FROZEN,
    stops.REVOKE,
    review.POLICY,
    stops.RESTORED,
    outcomes.ALARMS,
    agents.AGENTS,
    outcomes.REPAIRS,
    review.VIEW,
    review.VIEWS,
    review.WORDS,
    review.MESSAGES,
    account.ME,
    account.ERRORS,
    agents.POST,
    agents.NOWHERE,
]
SCENES = [scene for group in GROUPS for scene in group.scenes]
