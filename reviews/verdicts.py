"""What each verdict does to a request. Whoever calls examined the case and holds the
request's lock."""

from __future__ import annotations

from datetime import datetime, timedelta

from policies import facts
from policies.choices import Tier

from . import checks, requests, transitions
from .cases import Case, people_of_complete_steps
from .choices import Verdict
from .tallies import still, tally
from .votes import write


def _approve(case: Case) -> None:
    given = case.given()
    step = checks.place_of(case, given)
    write(case, counts=step)
    tally(case, [*given, step])


def _reject(case: Case) -> None:
    write(case)
    transitions.request.apply(
        case.request,
        "reject",
        actor=case.said.actor,
        now=case.now,
        changes={"settled_at": case.now, "recall_until": None},
        guard=still(case),
        verdict=Verdict.REJECT,
    )
    facts.release(case.request.proposal_id)


def escalate(case: Case, cause: str = "escalated") -> None:
    """One supervisor more, and once more time. Steps already complete are dropped.
    Caller examined the case under the request's lock."""
    write(case)
    request, version = case.request, case.version
    given = case.given()
    steps = requests.escalated_steps(version, given)
    carried = [*version.carried, *people_of_complete_steps(request, version)]
    evaluation = requests.evaluation_of(version.revision)
    transitions.request.apply(
        request,
        "escalate",
        actor=case.said.actor,
        now=case.now,
        changes={
            "version": request.version + 1,
            "tier": Tier.ESCALATE,
            "expires_at": _extended(case, evaluation.timeout),
        },
        guard=still(case),
        steps=steps,
        verdict=case.said.verdict,
        data={"cause": cause},
    )
    escalated_by = list(version.escalated_by)
    if cause == "escalated":
        escalated_by.append(case.said.person.public_id)
    requests.seal(
        request,
        version.revision,
        evaluation,
        cause=cause,
        now=case.now,
        steps=steps,
        carried=carried,
        escalated_by=escalated_by,
    )


def _extended(case: Case, seconds: int) -> datetime:
    """The deadline moves on the first escalation only, never past the rule's most."""
    request = case.request
    if requests.was_escalated(request):
        return request.expires_at
    later = request.expires_at + timedelta(seconds=seconds)
    return min(later, request.expires_at_most)


VERDICTS = {
    Verdict.APPROVE: _approve,
    Verdict.REJECT: _reject,
    Verdict.ESCALATE: escalate,
}
