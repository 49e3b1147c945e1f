"""The context of a decision, and the facts behind it: everything read after the
request's lock, including which of its steps are already filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from journal.errors import ReauthenticationRequired
from journal.statements import Statement
from policies import active, second_factors
from policies.choices import Risk, Role, StepUpMethod, describe_methods
from policies.models import FederatedIdentity, Person
from reviews import locks, permissions, quorum
from reviews.governance import readings as state_readings
from reviews.governance.readings import KnownReadings
from reviews.grants.grants import GrantConditions, join_conditions
from reviews.models import (
    ApprovalRequest,
    Decision,
    Hold,
    RequestVersion,
    StateReading,
)
from reviews.permissions import DeciderFacts
from reviews.quorum import StepData
from reviews.stops import gate_state
from reviews.stops.gate_state import GateState
from reviews.stops.stops import build_action_key

from .preflight import Preflight
from .submission import VerdictSubmission


class EarlierVote(NamedTuple):
    """A vote that counted on a version: by whom, and its conditions."""

    version: int
    person: str
    conditions: GrantConditions


@dataclass(slots=True)
class DecisionContext:
    """Everything that one decision needs; all but `preflight` is read after the
    request's lock."""

    submission: VerdictSubmission
    request: ApprovalRequest
    version: RequestVersion
    role: Role
    now: datetime
    preflight: Preflight = field(default_factory=Preflight)
    hold: Hold | None = None  # locked; it ends with the decision
    reading: StateReading | None = None  # what was shown; None for the revision's own
    filled: Sequence[int] = ()  # the step index of each vote that already counts
    earlier: Sequence[EarlierVote] = ()  # every vote that counted on some version

    @property
    def conditions(self) -> GrantConditions:
        """The conditions of this approval and of those that count beside it."""
        version = self.version
        others = [
            vote.conditions
            for vote in self.earlier
            if vote.version == version.number or vote.person in version.carried
        ]
        return join_conditions([*others, self.submission.conditions])


_FACTS = Statement(f"""
SELECT {gate_state.COLUMNS},
    (SELECT json_agg(json_build_array(
                cast_vote.request_id, cast_vote.version, request.version,
                voter.public_id, voter.email, cast_vote.step, cast_vote.counts,
                cast_vote.conditions)
            ORDER BY cast_vote.id)
     FROM reviews_decision AS cast_vote
     JOIN reviews_approvalrequest AS request ON request.id = cast_vote.request_id
     JOIN policies_person AS voter ON voter.id = cast_vote.reviewer_id
     WHERE cast_vote.request_id = ANY(%(requests)s::text[])),
    {permissions.DECIDER_COLUMNS}
FROM (SELECT 1) AS always
LEFT JOIN policies_person AS who ON who.id = %(person)s
""")  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """What the checks of one person's verdicts need. `filled` has the step index of
    each vote that counts on the newest version, and `earlier` every vote that counted
    on some version, by request id."""

    state: GateState
    person: Person  # with the roles and queues of this moment
    known: DeciderFacts
    holds: Mapping[str, Hold]  # locked
    readings: KnownReadings
    filled: Mapping[str, Sequence[int]]
    earlier: Mapping[str, Sequence[EarlierVote]]


def load_decision_facts(
    submissions: Sequence[VerdictSubmission], requests: Mapping[str, ApprovalRequest]
) -> DecisionFacts:
    """Load the facts for these verdicts of one person, in a number of queries that does
    not grow with them. Locks their holds. Caller holds the locks of the requests.
    Raises LookupError when the person is gone."""
    rows = [requests[submission.request_id] for submission in submissions]
    ids = [row.pk for row in rows]
    holds = locks.lock_holds(ids)
    actions = {build_action_key(row.proposal) for row in rows}
    state, (votes, *decider) = gate_state.load_row(
        _FACTS, actions, requests=ids, person=submissions[0].person.pk
    )
    who, cast = permissions.build_decider(decider), votes or []
    if who is None:
        raise LookupError(f"there is no person {submissions[0].person.pk}")
    filled: dict[str, list[int]] = {pk: [] for pk in ids}
    earlier: dict[str, list[EarlierVote]] = {pk: [] for pk in ids}
    for request, version, current, voter, _, step, counts, stored in cast:
        if counts and version == current and step is not None:
            filled[request].append(step)
        if counts:
            conditions = GrantConditions.from_json(stored)
            earlier[request].append(EarlierVote(version, voter, conditions))
    return DecisionFacts(
        state=state,
        person=who.person,
        known=DeciderFacts(
            who.is_stopped,
            permissions.collect_votes(who.person, (vote[:5] for vote in cast)),
        ),
        holds=holds,
        readings=state_readings.load_readings(
            [
                (requests[submission.request_id].sealed.revision, submission.reading)
                for submission in submissions
                if submission.commits
            ]
        ),
        filled=filled,
        earlier=earlier,
    )


def list_complete_step_people(
    request: ApprovalRequest, version: RequestVersion, given: Sequence[int]
) -> list[str]:
    """Public ids of the people who filled the complete steps: their votes carry over to
    a next version, and they are not asked again. `given` holds the step index of every
    vote that counts."""
    lacking = quorum.missing(version.steps, given)
    if all(lacking):
        return []
    votes = Decision.objects.filter(
        request=request, version=version.number, counts=True
    ).select_related("reviewer")
    return [
        vote.reviewer.public_id
        for vote in votes
        if vote.step is not None and not lacking[vote.step]
    ]


def find_vacated_step(request: ApprovalRequest, reviewer: str) -> StepData:
    """The step that the reviewer filled in an earlier version, and that is now open
    again. Raises LookupError if they never voted."""
    vote = (
        Decision.objects.filter(
            request=request, reviewer__public_id=reviewer, counts=True
        )
        .order_by("-version")
        .values("version", "step")
        .first()
    )
    if vote is None:
        raise LookupError(f"{reviewer} is counted in {request}, and never voted.")
    filled = request.versions.get(number=vote["version"])
    return {"role": filled.steps[vote["step"]]["role"], "required": 1}


def list_step_up_methods(version: RequestVersion) -> Sequence[StepUpMethod]:
    """What confirms a decision of this version, by the policy it was sealed under."""
    policy = active.load_stored_policy(version.policy_id)
    return policy.step_up_methods[Risk(version.risk)]


def check_step_up(
    submission: VerdictSubmission, version: RequestVersion, now: datetime
) -> None:
    """Check that the person just confirmed exactly this verdict by a method that they
    have, and that the policy of the version takes at its risk (docs/invariants.md I16).
    Raises ReauthenticationRequired. Caller holds the request's lock and read the person
    after it."""
    proof, bound = submission.step_up, submission.bound.digest
    if proof is None or not proof.holds(bound, now):  # guard: step-up-bound
        raise ReauthenticationRequired
    methods = list_step_up_methods(version)
    if proof.method not in methods:  # guard: step-up-method
        raise ReauthenticationRequired(
            f"{describe_methods(methods)} Nothing was decided."
        )
    lacking = _find_lacking(submission.person, StepUpMethod(proof.method))
    if lacking:
        raise ReauthenticationRequired(f"{lacking} Nothing was decided.")


def _find_lacking(person: Person, method: StepUpMethod) -> str:
    """A sentence where the person does not have any more what the proof was; else
    ""."""
    if method is StepUpMethod.TOTP and not second_factors.find_device(person):
        return "You have no authenticator app any more."
    if method is StepUpMethod.PASSKEY and not second_factors.has_passkey(person):
        return "You have no passkey any more."
    if method is StepUpMethod.PROVIDER:
        linked = FederatedIdentity.objects.filter(person=person).exists()
        return "" if linked else "No identity provider signs you in any more."
    if method is StepUpMethod.PASSWORD and not person.has_usable_password():
        return "You have no password to confirm it with."
    return ""
