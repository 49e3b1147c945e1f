"""What a draft of the policy would mean for the requests that wait: one by one, and
counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from django.db.models import F, QuerySet

from policies import active, bands
from policies.choices import Risk, Role, Tier, name_methods
from policies.evaluation import Evaluation, RequiredStep
from policies.models import PolicyVersion
from reviews.choices import RequestStatus
from reviews.models import RequestVersion

from .ruling import reevaluate_under_draft

PAGE = 200  # requests that are judged at once


class Consequence(StrEnum):
    """What becomes of a waiting request, the most important first."""

    GONE = "gone"  # it could not run any more
    MORE = "more"  # it would not run as the page asks now
    LESS = "less"  # proposed again, it would need less
    MOVED = "moved"  # proposed again, it would wait elsewhere
    SAME = "same"


class WaitingEffect(NamedTuple):
    """A waiting request, what it needs now, and what the draft asks of it."""

    version: RequestVersion
    consequence: Consequence
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """The requests from place `first` on, the oldest first, as far as they were judged
    together: `judged` of `waiting`. `effects` are those for which something changes."""

    waiting: int
    first: int
    judged: int
    effects: Sequence[WaitingEffect]
    counts: Mapping[Consequence, int]

    @property
    def following(self) -> int | None:
        """The place of the first one that is on the next page."""
        after = self.first + self.judged
        return after if after < self.waiting else None


def judge_waiting(
    draft: PolicyVersion, *, now: datetime, first: int = 0
) -> WaitingPage:
    """Judge waiting requests by a policy that is not active. The facts are those of
    their proposals."""
    rows = _select_waiting()
    related = rows.select_related(
        "request", "queue", "revision__tool", "revision__policy", "revision__proposal"
    )
    judged = related.order_by("request__opened_at", "pk")[first : first + PAGE]
    effects = [_judge_version(version, draft, now) for version in judged]
    order = list(Consequence)
    return WaitingPage(
        rows.count(),
        first,
        len(effects),
        sorted(
            (
                effect
                for effect in effects
                if effect.consequence is not Consequence.SAME
            ),
            key=lambda effect: order.index(effect.consequence),
        ),
        Counter(effect.consequence for effect in effects),
    )


def _select_waiting() -> QuerySet[RequestVersion]:
    return RequestVersion.objects.filter(
        number=F("request__version"),
        request__status=RequestStatus.PENDING,
        request__canary=False,
    )


def _judge_version(
    version: RequestVersion, draft: PolicyVersion, now: datetime
) -> WaitingEffect:
    asked = reevaluate_under_draft(version.revision, draft, now=now)
    was = Evaluation.from_json(version.revision.evaluation)
    consequence = _weigh_change(version, was, asked)
    after = "blocked" if asked is None else bands.describe_people(asked)
    if asked is not None and asked.queue and asked.queue != was.queue:
        after = f"{after} in {asked.queue}"
    if consequence is not Consequence.GONE and (noun := _narrow(version, asked, draft)):
        consequence, after = Consequence.MORE, f"{after} with {noun}"
    return WaitingEffect(version, consequence, _describe_asked(version, was), after)


def _narrow(
    version: RequestVersion, asked: Evaluation | None, draft: PolicyVersion
) -> str:
    """What a vote must be confirmed by under the draft, where it does not take every
    method that confirms one now; else ""."""
    if asked is None or not (asked.step_up or version.tier == Tier.ESCALATE):
        return ""
    now = active.load_stored_policy(version.policy_id).step_up_methods
    taken = active.load_document(draft).desk.list_step_up_methods(asked.risk)
    narrower = not {*now[Risk(version.risk)]} <= {*taken}
    return name_methods(taken) if narrower else ""


def _describe_asked(version: RequestVersion, was: Evaluation) -> str:
    """What it needs now. Escalated, it asks other people than it was opened with."""
    if version.tier == was.tier:
        return bands.describe_people(was)
    steps = [RequiredStep(Role(s["role"]), s["required"]) for s in version.steps]
    return bands.describe_steps(steps)


def _weigh_change(
    version: RequestVersion, was: Evaluation, asked: Evaluation | None
) -> Consequence:
    if asked is None or asked.tier is Tier.BLOCK:
        return Consequence.GONE
    pairs = [
        (Tier(version.tier).rank, asked.tier.rank),
        (bands.count_people(was), bands.count_people(asked)),
        (
            bands.count_people(was, Role.SUPERVISOR),
            bands.count_people(asked, Role.SUPERVISOR),
        ),
    ]
    proof = asked.step_up and not was.step_up
    if proof or any(now > before for before, now in pairs):
        return Consequence.MORE
    if any(now < before for before, now in pairs):
        return Consequence.LESS
    return Consequence.MOVED if asked.queue != was.queue else Consequence.SAME
