"""Second reviews: a sample of decisions that another person judges anew, blind.

A second reader who knows the first answer conforms to it (Cooper et al. 2021), so the
second reviewer sees what the first one saw and neither verdict nor name. It happens
after the fact and changes nothing: an approval stays, and a rejection is never opened
again. A supervisor says who was right where the two disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac

from journal import clock, log, sweeps
from journal.clock import ClockTimestamp
from journal.errors import (
    AlreadyDecided,
    NotFound,
    NotPermitted,
    RequestExpired,
    TextMissing,
)
from journal.operations import operation
from policies import active
from policies.choices import Risk, Role, Tier
from policies.models import Person
from policies.people import build_actor
from reviews import permissions, transitions
from reviews.choices import DECIDED, ExecutionStatus, SampleCause, Verdict
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    SecondReview,
    UpheldReview,
)

from . import targets

SAMPLER = log.Actor("system", "assurance")
CONSIDERED = timedelta(hours=2)  # decisions of this time are considered for the sample
LIFETIME = timedelta(hours=24)
_SAMPLE = "reviews.second_reviews"
FAST_FLAG = "fast"
# How much likelier a decision is chosen that was made before the minimum reading time,
# or is the first on its payee or record.
LIKELIER_FACTOR = 4
LONGEST_REASON = 2000  # characters


def choose_second_reviews() -> int:
    """Choose the decisions of the last two hours that are reviewed a second time.
    Returns how many. Repeating it chooses none twice, and none that it passed over."""
    policy = active.find_active_policy()
    share = active.load_document(policy).assurance.second_reviews if policy else 0
    if not share:
        return 0
    chosen = list(_list_sampled(share, clock.now()))
    return sweeps.run_each(
        lambda sample: choose_decision(decision_id=sample[0], cause=sample[1]), chosen
    )


def _list_sampled(share: float, now: datetime) -> Iterator[tuple[int, SampleCause]]:
    decisions = list(
        Decision.objects.filter(
            at__gt=now - CONSIDERED,
            verdict__in=[Verdict.APPROVE, Verdict.REJECT],
            version=F("request__version"),
            request__status__in=DECIDED,
            request__tier=Tier.APPROVE,
            request__risk__in=[Risk.MEDIUM, Risk.HIGH],
            second__isnull=True,
        )
        .order_by("pk")
        .select_related("request")
    )
    likelier = [
        decision
        for decision in decisions
        if draw_number(decision.request_id) < share * LIKELIER_FACTOR
    ]
    slow = [decision for decision in likelier if FAST_FLAG not in decision.flags]
    first_targets = targets.find_first_targets(slow)
    for decision in likelier:
        if FAST_FLAG in decision.flags:
            yield decision.pk, SampleCause.FAST
        elif decision.pk in first_targets:
            yield decision.pk, SampleCause.TARGET
        elif draw_number(decision.request_id) < share:
            yield decision.pk, SampleCause.SAMPLE


def draw_number(request_id: str) -> float:
    """A number from 0 up to, but not including, 1 that is always the same for a
    request, so that a decision is drawn once. Only the installation's key gives it:
    nobody can tell while they decide whether another person will check."""
    digest = salted_hmac(_SAMPLE, request_id, algorithm="sha256").digest()
    return int.from_bytes(digest[:6]) / 2**48


@operation(writes="SecondReview", logs="second_review.chosen")
def choose_decision(*, decision_id: int, cause: SampleCause) -> bool:
    """Ask for a second review of a decision. Returns False if it was asked for."""
    decision = Decision.objects.select_related("request__proposal").get(pk=decision_id)
    now, request = clock.now(), decision.request
    _, created = SecondReview.objects.get_or_create(
        decision=decision,
        defaults={
            "tool_name": request.tool_name,
            "risk": request.risk,
            "cause": cause,
            "chosen_at": now,
            "due_at": now + LIFETIME,
        },
    )
    if created:
        _log_event("second_review.chosen", request, SAMPLER, now, {"cause": cause})
    return created


def select_open_reviews(
    person: Person, now: datetime | ClockTimestamp
) -> QuerySet[SecondReview]:
    """The second reviews that this person may answer now. Nobody is asked about an
    effect whose outcome is unknown: people have to look for it."""
    me = person.public_id
    unknown = Execution.objects.filter(
        proposal=OuterRef("decision__request__proposal"), status=ExecutionStatus.UNKNOWN
    )
    reviews = _select_of_queues(person).filter(answered_at__isnull=True, due_at__gt=now)
    # guard: second-barred
    reviews = reviews.exclude(decision__request__barred__contains=[me])
    return (
        reviews.exclude(Exists(unknown))
        .exclude(decision__reviewer=person)
        .exclude(decision__request__closed_to__contains=[me])
        .order_by("due_at")
    )


def select_split_reviews(person: Person) -> QuerySet[SecondReview]:
    """The disagreements that this person may settle."""
    reviews = _select_of_queues(person).filter(agrees=False, ruled_at__isnull=True)
    if permissions.find_deciding_role(person) is not Role.SUPERVISOR:
        return reviews.none()
    own = Q(decision__reviewer=person) | Q(reviewer=person)
    return reviews.exclude(own).order_by("answered_at")


def _select_of_queues(person: Person) -> QuerySet[SecondReview]:
    if permissions.find_deciding_role(person) is None:
        return SecondReview.objects.none()
    return SecondReview.objects.filter(
        decision__request__queue__in=permissions.queues_of(person)
    ).select_related("decision__request__proposal", "decision__reviewer", "reviewer")


@operation(writes="SecondReview", logs="second_review.answered")
def record_answer(
    *, decision_id: int, person: Person, verdict: Verdict, reason: str
) -> SecondReview:
    """Record the second verdict. Raises NotFound, NotPermitted, AlreadyDecided when
    somebody was faster, RequestExpired, and TextMissing for a rejection without a
    reason."""
    now, review = clock.now(), _load_review(decision_id)
    decision = review.decision
    request = decision.request
    _check_may_answer(person, decision)
    if review.due_at <= now:
        raise RequestExpired("This second review has lapsed. Nothing was recorded.")
    if verdict is Verdict.REJECT and not reason.strip():
        raise TextMissing("Say why you would reject it. Nothing was recorded.")
    agrees = verdict == decision.verdict
    changed = SecondReview.objects.filter(pk=decision.pk, answered_at__isnull=True)
    if not changed.update(
        reviewer=person,
        verdict=verdict,
        reason=reason.strip()[:LONGEST_REASON],
        answered_at=now,
        agrees=agrees,
    ):
        raise AlreadyDecided("Somebody else has just reviewed this.")
    data, actor = {"agrees": agrees}, build_actor(person)
    _log_event("second_review.answered", request, actor, now, data, reason)
    review.refresh_from_db()
    return review


def _check_may_answer(person: Person, decision: Decision) -> None:
    permissions.check_admitted_to_queue(person, decision.request.queue_id)
    if decision.request.proposal.bars(person.public_id):
        raise NotPermitted(
            f"{permissions.CONCERNED_PREFIX}review it. Nothing was recorded."
        )
    if decision.reviewer_id == person.pk:  # guard: other-reviewer
        raise NotPermitted("You decided this yourself. Nothing was recorded.")


@operation(writes="SecondReview", logs="second_review.settled")
def record_ruling(
    *, decision_id: int, person: Person, upheld: UpheldReview, reason: str
) -> None:
    """Record whose verdict was right, where two people disagree. It reopens nothing.
    Raises NotFound, NotPermitted, AlreadyDecided, TextMissing."""
    now, review = clock.now(), _load_review(decision_id)
    request = review.decision.request
    role = permissions.check_admitted_to_queue(person, request.queue_id)
    if role is not Role.SUPERVISOR or request.proposal.bars(person.public_id):
        raise NotPermitted("A supervisor must say who was right.")
    if person.pk in {review.decision.reviewer_id, review.reviewer_id}:
        raise NotPermitted("You gave one of the two verdicts. Nothing was recorded.")
    if not reason.strip():
        raise TextMissing("Say why. Nothing was recorded.")
    split = SecondReview.objects.filter(
        pk=review.pk, agrees=False, ruled_at__isnull=True
    )
    if not split.update(
        arbiter=person,
        upheld=upheld,
        ruling=reason.strip()[:LONGEST_REASON],
        ruled_at=now,
    ):
        raise AlreadyDecided("There is no disagreement left to settle.")
    actor = build_actor(person)
    data = {"upheld": upheld}
    _log_event("second_review.settled", request, actor, now, data, reason)


def _load_review(decision_id: int) -> SecondReview:
    reviews = SecondReview.objects.select_related("decision__request__proposal")
    review = reviews.filter(pk=decision_id).first()
    if review is None:
        raise NotFound
    return review


def _log_event(
    kind: str,
    request: ApprovalRequest,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any],
    reason: str = "",
) -> None:
    log.append(
        kind,
        actor=actor,
        at=now,
        data=data,
        private={"reason": reason} if reason else None,
        **transitions.request.context(request),
    )
