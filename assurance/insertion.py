"""Putting canaries before reviewers: who is due, what is cloned, and the operation that
plants one.

A canary is a clone of a request that people approved, with one defect of the library.
It passes the same policy as a proposal of an agent. It takes part in no sum, because
`govern` reads the sums without their locks and nothing records it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.utils.crypto import salted_hmac

from journal import clock, failpoints, log, restore_epochs, sweeps, writes
from journal.errors import DatabaseRestored
from journal.operations import operation
from policies import active
from policies.choices import Risk, Role
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import DefectKind, RequestStatus, Verdict
from reviews.governance.ruling import ProposedAction, Ruling
from reviews.models import ApprovalRequest, Canary, Decision, Proposal, Revision
from reviews.models.base import new_proposal_id
from reviews.requests import versions
from reviews.requests.revisions import Narrative, add_revision, build_redactor
from reviews.stops import stops

from . import clones, library, rates
from .clones import LATELY, NEWEST
from .defects import PlantedDefect
from .rates import ReviewerRecord

PLANTER = log.Actor("system", "assurance")
AT_WORK = timedelta(minutes=30)  # a reviewer who decided within it is at work
TRIED = 20  # requests from which a clone is tried
BATCH_FLAG = "batch"
_FIRST = "reviews.first_canary"


@dataclass(frozen=True, slots=True)
class PreparedClone:
    """A clone that the policy would ask a reviewer about."""

    source: Proposal
    planted: PlantedDefect
    action: ProposedAction
    narrative: Narrative
    ruling: Ruling


def insert_due_canaries(random_source: random.Random | None = None) -> int:
    """Plant a canary for each reviewer at work who is due for one. Returns how many.

    Does nothing while the active policy has no canaries, or a restored database waits
    to be confirmed.
    """
    policy = active.find_active_policy()
    if policy is None or not active.load_document(policy).assurance.canaries:
        return 0
    chance = random_source or random.SystemRandom()
    people = _list_people_at_work(clock.now())
    return sweeps.run_each(lambda person: _insert_if_due(person, chance), people)


def _list_people_at_work(now: datetime) -> list[Person]:
    lately = Decision.objects.filter(at__gt=now - AT_WORK)
    ids = set(lately.values_list("reviewer", flat=True))
    return permissions.list_people_with_roles(ids)


def _insert_if_due(person: Person, chance: random.Random) -> bool:
    now = clock.now()
    if not is_due(person, now):
        return False
    clone = prepare_clone(person, now, chance)
    if clone is None:
        return False
    gap = rates.compute_gap(load_record(person, now), chance.random())
    try:
        return plant_canary(person=person, clone=clone, next_after=gap) is not None
    except DatabaseRestored:
        return False


def is_due(person: Person, now: datetime) -> bool:
    """Whether this person decided enough since their last canary, has none open, and no
    request of an agent would be delayed."""
    last = Canary.objects.filter(reviewer=person).order_by("-inserted_at").first()
    if last is not None and not last.ending:
        return False
    since = last.inserted_at if last is not None else now - LATELY
    gap = last.next_after if last is not None else compute_first_gap(person)
    decisions = _select_single_decisions(person).filter(at__gt=since)
    return decisions.count() >= gap and rates.has_slack(find_least_time(person, now))


def compute_first_gap(person: Person) -> int:
    """After how many decisions a person's first canary is due. Only the installation's
    key gives it."""
    digest = salted_hmac(_FIRST, person.public_id, algorithm="sha256").digest()
    fresh = ReviewerRecord(0, 0, 0, 0)
    return rates.compute_gap(fresh, int.from_bytes(digest[:6]) / 2**48)


def _select_single_decisions(person: Person) -> QuerySet[Decision]:
    """A batch is one decision for a person, and canaries are in none."""
    return Decision.objects.filter(reviewer=person).exclude(
        flags__contains=[BATCH_FLAG]
    )


def find_least_time(person: Person, now: datetime) -> timedelta | None:
    """The time that the most urgent request has left which this person may decide; None
    if there is none."""
    me, role = person.public_id, permissions.find_deciding_role(person)
    waiting = ApprovalRequest.objects.filter(
        status=RequestStatus.PENDING,
        queue__in=permissions.queues_of(person),
        expires_at__gt=now,
    ).exclude(Q(barred__contains=[me]) | Q(closed_to__contains=[me]))
    if role is not Role.SUPERVISOR:
        waiting = waiting.filter(supervisors_only=False)
    first = waiting.order_by("expires_at").values_list("expires_at", flat=True).first()
    return None if first is None else first - now


def load_record(person: Person, now: datetime) -> ReviewerRecord:
    """What the rate of a reviewer's canaries depends on."""
    newest = list(
        _select_single_decisions(person)
        .order_by("-at")
        .values_list("verdict", flat=True)[: rates.FEWEST_DECISIONS]
    )
    own = Canary.objects.filter(reviewer=person, caught__isnull=False)
    counts = own.filter(ended_at__gt=now - LATELY).aggregate(
        decided=Count("pk"), caught=Count("pk", filter=Q(caught=True))
    )
    return ReviewerRecord(
        len(newest),
        sum(verdict == Verdict.APPROVE for verdict in newest),
        counts["decided"],
        counts["caught"],
    )


def prepare_clone(
    person: Person, now: datetime, chance: random.Random | None = None
) -> PreparedClone | None:
    """A clone for this person whose defect they met least often; None if no decided
    request fits."""
    chance = chance or random.SystemRandom()
    sources = list(clones.select_sources(person, now)[:NEWEST])
    chance.shuffle(sources)
    met, weights = _count_met_defects(person), library.load_weights()
    for source in sources[:TRIED]:
        proposal = source.proposal
        if _is_stopped(proposal):
            continue
        for planted in clones.list_fitting_defects(
            proposal.current, uses=met, weights=weights, chance=chance
        ):
            clone = _build_clone(proposal, planted, now)
            if clone is not None and _may_decide(person, clone):
                return clone
    return None


def _count_met_defects(person: Person) -> dict[str, int]:
    met = Canary.objects.filter(reviewer=person).values("defect")
    return {row["defect"]: row["n"] for row in met.annotate(n=Count("pk"))}


def _is_stopped(proposal: Proposal) -> bool:
    return stops.find_stop_mode(*stops.build_action_key(proposal)) is not None


def _build_clone(
    source: Proposal, planted: PlantedDefect, now: datetime
) -> PreparedClone | None:
    """The clone, if the policy would ask one approval for it."""
    revision = source.current
    planned = clones.build_action(revision, planted, proposal=new_proposal_id())
    action = clones.read_anew(planned, revision)
    if action is None:
        return None
    ruling = clones.govern_clone(action, now)
    if ruling is None:
        return None
    narrative = _build_narrative(revision, planted)
    return PreparedClone(source, planted, action, narrative, ruling)


def _build_narrative(revision: Revision, planted: PlantedDefect) -> Narrative:
    return Narrative(
        rationale=planted.change.rationale,
        expected_outcome=revision.expected_outcome,
        reversal=revision.reversal,
        alternatives=revision.alternatives,
        evidence=revision.evidence,
    )


def _may_decide(person: Person, clone: PreparedClone) -> bool:
    """Whether this person could approve the clone if it were real."""
    ruling, money = clone.ruling, clone.ruling.money
    queue = versions.load_queue(ruling)
    above = money is not None and permissions.is_above_ceiling(
        person, money.minor, money.currency
    )
    return not above and queue.pk in permissions.queues_of(person)


@operation(
    locks="the person's holds (advisory)",
    writes="Proposal, Revision, ApprovalRequest, RequestVersion, Canary",
    logs="canary.planted",
    after="mail, wake-up",
)
def plant_canary(
    *, person: Person, clone: PreparedClone, next_after: int
) -> ApprovalRequest | None:
    """Plant a canary for one reviewer; None if they have an open one.

    Raises DatabaseRestored while nobody has confirmed a restored database.
    """
    restore_epochs.check_not_restored()
    # Two workers would otherwise plant one canary each.
    locks.lock_holds_of_person(person.public_id)
    if Canary.objects.filter(reviewer=person, ending="").exists():
        return None
    now, action, ruling = clock.now(), clone.action, clone.ruling
    proposal = _build_proposal(clone, now)
    kind = clone.planted.defect.kind
    with writes.unit_of_work():
        writes.insert_rows([proposal])
        revision = add_revision(
            proposal,
            1,
            action,
            clone.narrative,
            ruling,
            log.Actor("agent", proposal.agent),
            now,
            redactor=build_redactor(action, ruling),
        )
        request = versions.open_request(
            proposal,
            revision,
            ruling,
            actor=PLANTER,
            now=now,
            expires_in=None,
            canary_for=person.public_id,
            data={"source": clone.source.pk, "defect": kind},
        )
    Canary.objects.create(
        proposal=proposal,
        source=clone.source,
        reviewer=person,
        tool_name=proposal.tool_name,
        risk=Risk(request.risk),
        defect=DefectKind(kind),
        field=clone.planted.change.field,
        inserted_at=now,
        next_after=next_after,
    )
    failpoints.point("canary_uncommitted", request.pk)
    return request


def _build_proposal(clone: PreparedClone, now: datetime) -> Proposal:
    source = clone.source
    return Proposal(
        id=clone.action.proposal,
        agent=source.agent,
        thread=source.thread,
        tool_name=source.tool_name,
        barred=list(source.barred),
        kept_out=list(source.kept_out),
        on_behalf_of=source.on_behalf_of,
        parent=source.parent,
        priority=source.priority,
        source=source.source,
        canary=True,
        created_at=now,
    )
