"""The scope of a stop: the proposals and executions that it affects.

A stop withdraws everything in its scope that has not run; a pause keeps it waiting.
"""

from __future__ import annotations

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from reviews.choices import OPEN, ExecutionStatus, Scope, StopMode
from reviews.models import ApprovalRequest, Decision, Proposal, RequestVersion, Stop


def list_proposals_to_withdraw(stop: Stop) -> list[str]:
    """Ids of the proposals that a stop withdraws, oldest first; none for a pause."""
    if stop.mode == StopMode.PAUSED or stop.lifted_at is not None:
        return []
    in_scope = Proposal.objects.filter(
        build_scope_condition(Scope(stop.scope), stop.key)
    )
    asked = in_scope.filter(request__status__in=OPEN)
    queued = in_scope.filter(executions__status=ExecutionStatus.QUEUED)
    ages = [rows.values_list("created_at", "pk") for rows in (asked, queued)]
    return [pk for _, pk in ages[0].union(ages[1]).order_by("created_at")]


def build_paused_condition() -> Q:
    """Condition on executions: a pause in force covers them, and no stop does."""
    return Q(_build_mode_condition(StopMode.PAUSED)) & ~Q(
        _build_mode_condition(StopMode.STOPPED)
    )


def build_stopped_condition() -> Exists:
    """Condition on executions: a stop covers them that is in force or was set after
    the grant, even if it has been lifted since."""
    since = Q(lifted_at__isnull=True) | Q(at__gte=OuterRef("grant__issued_at"))
    return Exists(_select_covering_stops().filter(since, mode=StopMode.STOPPED))


def build_revoked_condition() -> Exists:
    """Condition on executions: an approver was stopped since their counting vote."""
    since = Q(lifted_at__isnull=True) | Q(at__gte=OuterRef("at"))
    theirs = Stop.objects.filter(
        since, scope=Scope.REVIEWER, key=OuterRef("reviewer__public_id")
    )
    votes = Decision.objects.filter(
        Exists(theirs), request__proposal=OuterRef("proposal"), counts=True
    )
    return Exists(votes)


def _build_mode_condition(mode: StopMode) -> Exists:
    return Exists(_select_covering_stops().filter(mode=mode, lifted_at__isnull=True))


def _select_covering_stops() -> QuerySet[Stop]:
    run = Concat(
        OuterRef("proposal__agent"),
        Value("/"),
        OuterRef("proposal__thread"),
        output_field=CharField(),
    )
    over = (
        Q(scope=Scope.EVERYTHING)
        | Q(scope=Scope.AGENT, key=OuterRef("proposal__agent"))
        | Q(scope=Scope.TOOL, key=OuterRef("proposal__tool_name"))
        | Q(scope=Scope.THREAD, key=run)
    )
    return Stop.objects.filter(over)


def build_scope_condition(scope: Scope, key: str, path: str = "") -> Q:
    """Condition on proposals: they are in the scope of a stop with this key. `path` is
    the lookup path from the queried rows to their proposal, for example `"proposal__"`
    for executions."""
    if scope is Scope.EVERYTHING:
        return Q()
    if scope is Scope.AGENT:
        return Q(**{f"{path}agent": key})
    if scope is Scope.TOOL:
        return Q(**{f"{path}tool_name": key})
    if scope is Scope.THREAD:
        agent, _, thread = key.partition("/")
        return Q(**{f"{path}agent": agent, f"{path}thread": thread})
    return Q(**{f"{path}request__in": select_approved_by(key)})


def select_approved_by(reviewer: str) -> QuerySet[ApprovalRequest]:
    """Requests in which this person's approval counts (`reviewer` is a public id). It
    counts as a vote on the current version, or carried over from an earlier one."""
    votes = Decision.objects.filter(reviewer__public_id=reviewer, counts=True)
    of_now = votes.filter(request=OuterRef("pk"), version=OuterRef("version"))
    carried = RequestVersion.objects.filter(
        request=OuterRef("pk"),
        number=OuterRef("version"),
        carried__contains=[reviewer],
    )
    requests = ApprovalRequest.objects.filter(pk__in=votes.values("request"))
    return requests.filter(Exists(of_now) | Exists(carried))


def has_counted_approval(request: ApprovalRequest, reviewer: str) -> bool:
    """Whether this person's approval counts in one request. Caller holds its lock."""
    return select_approved_by(reviewer).filter(pk=request.pk).exists()
