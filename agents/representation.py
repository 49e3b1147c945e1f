"""A proposal as its agent sees it: facts, and no reviewer's name. Every call that
returns a proposal returns this shape.

The ids of outcomes are made here too. An id is a keyed hash of what happened, so it
needs no row of its own and is the same after any crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import (
    Case,
    CharField,
    F,
    Func,
    JSONField,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from pydantic import ValidationError

from journal import clock, encryption, ids, known_keys
from journal.errors import InvalidOutcome
from journal.prepared_queries import Parameter, PreparedQuery
from policies.choices import ExecutionClass, Role
from reviews.choices import (
    DECIDED,
    ENDED,
    EXECUTION_SPECS,
    OPEN,
    REQUEST_SPECS,
    UNGRANTED,
    ExecutionStatus,
    RequestStatus,
    Verdict,
)
from reviews.dialogue import rounds
from reviews.executions import claims, record
from reviews.grants import tokens, uncertain
from reviews.models import ApprovalRequest, Decision, Execution, Proposal, Revision
from reviews.redaction.redactor import load_redactor_of
from reviews.requests import repeats

from .models import Acknowledgement, Delivery
from .schemas.proposals import ProposalOut


def compute_settled_id(proposal: str) -> str:
    """Return the outcome id of a proposal that was answered at once, or whose request
    is settled."""
    return _compute_outcome_id(proposal, "settled")


def compute_ended_id(proposal: str, status: str, fence: int) -> str:
    """Return the outcome id of the end of one attempt. When a person later settles an
    unknown outcome, the new status makes another id."""
    return _compute_outcome_id(proposal, "ended", status, fence)


def compute_offered_id(proposal: str, fence: int, again: datetime | None = None) -> str:
    """Return the outcome id of a grant that the agent may redeem. For the first attempt
    (`fence` 0) it is the id of the settled request. `again` is when a person had a
    failed execution retried, which makes another offer."""
    return _compute_outcome_id(proposal, *name_offer(fence, again))


def name_offer(fence: int, again: datetime | None = None) -> list[str | int]:
    """The words of which the id of an offered grant is made."""
    if not fence:
        return ["settled"]
    return ["offered", fence, *([again.isoformat()] if again else [])]


def compute_request_event_id(
    proposal: str, event: str, version: int, round_: int = 0
) -> str:
    """Return the id of an event about a request's version, such as `request.opened`, or
    about a round of its messages. It is not an outcome, which an agent acknowledges."""
    return _compute_outcome_id(proposal, event, version, *([round_] if round_ else []))


def _compute_outcome_id(proposal: str, *what: str | int) -> str:
    """While there is a former TAG_KEY: the id that was acknowledged or sent, otherwise
    the one by the key that was in use when the proposal was made, so that no agent gets
    an outcome under two names."""
    possible = list_outcome_ids(proposal, *what)
    # guard: former-outcome
    if len(possible) > 1:
        taken = Acknowledgement.objects.filter(pk__in=possible).values_list("pk")
        sent = Delivery.objects.filter(event__in=possible).values_list("event")
        known = {row for (row,) in taken} or {row for (row,) in sent}
        used = possible[_find_key_position(proposal)]
        possible = [outcome for outcome in possible if outcome in known] or [used]
    return possible[0]


def _find_key_position(proposal: str) -> int:
    """Of the key in `list_tag_keys` that was in use when the proposal was made. 0 for
    one that this process does not have."""
    made = Proposal.objects.filter(pk=proposal).values_list("created_at", flat=True)
    used = known_keys.find_key_at("TAG_KEY", made.first() or clock.now())
    ids_of_keys = [known_keys.format_id(key) for key in encryption.list_tag_keys()]
    return ids_of_keys.index(used) if used in ids_of_keys else 0


def list_outcome_ids(proposal: str, *what: str | int) -> list[str]:
    """The id of an outcome under the present TAG_KEY, then under each former one."""
    return [
        ids.derive_id("o", key, "outcome", proposal, *what)
        for key in encryption.list_tag_keys()
    ]


FROM_AGENT = "agent"  # the sender of the agent's own messages
STATUSES = {"blocked"}
STATUSES |= {spec.api_word for spec in EXECUTION_SPECS.values()}
STATUSES |= {spec.api_word for spec in REQUEST_SPECS.values()}
# `unknown` counts as final until a person or a look-up settles it. `granted` is final
# only when the agent is to redeem the grant (see `is_final`).
FINAL_STATUSES = {"blocked"}
FINAL_STATUSES |= {EXECUTION_SPECS[status].api_word for status in ENDED}
FINAL_STATUSES |= {REQUEST_SPECS[status].api_word for status in UNGRANTED}


def annotate_status(proposals: QuerySet[Proposal]) -> QuerySet[Any]:
    """Annotate `said`: the status word that the agent sees, computed in SQL."""
    newest = Execution.objects.filter(proposal=OuterRef("pk")).order_by("-queued_at")
    return proposals.annotate(
        execution_status=Subquery(newest.values("status")[:1]),
        said=Case(
            When(blocked_by__gt="", then=Value("blocked")),
            When(repeats__gt="", then=Value("rejected")),
            default=Coalesce(
                _build_word(F("execution_status"), EXECUTION_SPECS),
                _build_word(F("request__status"), REQUEST_SPECS),
            ),
            output_field=CharField(),
        ),
    )


def _build_word(status: F, specs: Mapping[str, Any]) -> Func:
    """The word of a status, looked up in a map: a CASE would compute a status that is a
    subquery once for each of its branches."""
    words = {key: spec.api_word for key, spec in specs.items()}
    return Func(
        Value(words, JSONField()),
        status,
        function="jsonb_extract_path_text",
        output_field=CharField(),
    )


def compute_status_word(
    proposal: Proposal, request: ApprovalRequest | None, execution: Execution | None
) -> str:
    """Compute the same word as `annotate_status` from rows that are loaded already.
    Raises LookupError for a proposal that is in none of the states."""
    if proposal.blocked_by:
        return "blocked"
    if proposal.repeats:
        return "rejected"
    if execution is not None:
        return EXECUTION_SPECS[execution.status].api_word
    if request is None:
        raise LookupError(f"{proposal} was neither blocked, asked nor granted.")
    return REQUEST_SPECS[request.status].api_word


_PROPOSAL = PreparedQuery(
    lambda: Proposal.objects.select_related("request").filter(
        pk=Parameter("pk"), agent=Parameter("agent")
    )
)


def find_proposal(agent: str, proposal_id: str) -> Proposal | None:
    """Return this agent's proposal with its request, or None."""
    return _PROPOSAL.fetch_first(agent=agent, pk=proposal_id)


def build_proposal_json(
    proposal: Proposal, *, undecided: bool = False
) -> dict[str, Any]:
    """Build the JSON object `ProposalOut`. `undecided` saves a query where the caller
    knows that nobody has voted on the newest version. Raises InvalidOutcome rather than
    return one that violates the published schema."""
    revision = proposal.current
    request = getattr(proposal, "request", None)
    execution = _find_newest_execution(proposal, request)
    status = compute_status_word(proposal, request, execution)
    # Of a repeated proposal, the request that was rejected.
    settled = request or repeats.find_rejected_request(proposal)
    grant = _build_grant(execution)
    outcome = _find_outcome_id(proposal, execution, status, grant)
    return _check_fits_schema(
        {
            "id": proposal.pk,
            "thread": proposal.thread,
            "tool": proposal.tool_name,
            "revision": revision.number,
            "action_hash": revision.action_hash,
            "status": status,
            "risk": revision.risk,
            "tier": request.tier if request else revision.tier,
            "policy": _build_policy(revision),
            "request": _build_request(request, undecided) if request else None,
            "returned": _is_returned(request),
            "messages": _build_messages(request, revision) if request else [],
            "grant": grant,
            "decision": build_decision(settled, settled.proposal.current)
            if settled
            else None,
            "execution": _build_execution(execution),
            "outcome": outcome,
            "acknowledged_at": _find_acknowledged_at(outcome),
            "may_have_run": request is not None
            and request.status in UNGRANTED
            and uncertain.may_have_run(request),
            "joined": request.joined if request else 0,
            "repeats": proposal.repeats or None,
            "parent": proposal.parent or None,
            "source": proposal.source or None,
            "created_at": format_timestamp(proposal.created_at),
            "settled_at": format_timestamp(
                _find_settled_at(proposal, request, execution)
            ),
        }
    )


def _check_fits_schema(described: dict[str, Any]) -> dict[str, Any]:
    try:
        ProposalOut.model_validate(described, strict=True)
    except ValidationError as error:
        places = (".".join(map(str, fault["loc"])) for fault in error.errors())
        raise InvalidOutcome(
            proposal=described["id"], places=sorted(set(places))
        ) from error
    return described


def _find_outcome_id(
    proposal: Proposal,
    execution: Execution | None,
    status: str,
    grant: dict[str, Any] | None,
) -> str | None:
    if execution is not None and execution.status in ENDED:
        return compute_ended_id(proposal.pk, execution.status, execution.fence)
    if execution is not None and grant is not None:
        return compute_offered_id(proposal.pk, execution.fence, execution.retried_at)
    return compute_settled_id(proposal.pk) if status in FINAL_STATUSES else None


_ACKNOWLEDGED_AT = PreparedQuery(
    lambda: Acknowledgement.objects.filter(pk=Parameter("outcome")).values_list(
        "at", flat=True
    )
)


def _find_acknowledged_at(outcome: str | None) -> str | None:
    if outcome is None:
        return None
    return format_timestamp(_ACKNOWLEDGED_AT.fetch_first(outcome=outcome))


def _is_returned(request: ApprovalRequest | None) -> bool:
    """Whether a person waits for a revision of the open request, or a supervisor
    returned this version of it with guidance."""
    if request is None or request.status not in OPEN:
        return False
    if request.with_agent_since is not None:
        return True
    if request.version == 1:
        return False
    return request.versions.filter(number=request.version, cause="returned").exists()


def _build_messages(
    request: ApprovalRequest, revision: Revision
) -> list[dict[str, Any]]:
    """The agent's own messages are stored redacted."""
    messages = rounds.list_sent_messages(request)
    if not messages:
        return []
    redactor = load_redactor_of(request.proposal, revision)
    return [
        {
            "from": message.role or FROM_AGENT,
            "kind": message.kind,
            "text": redactor.text(message.text) if message.role else message.text,
            "at": format_timestamp(message.at),
            "round": message.round,
        }
        for message in messages
    ]


def count_received(described: dict[str, Any]) -> int:
    """How many messages of people a proposal's JSON has: one more wakes the agent."""
    return sum(message["from"] != FROM_AGENT for message in described["messages"])


def _find_newest_execution(
    proposal: Proposal, request: ApprovalRequest | None
) -> Execution | None:
    """Without a query for a request that is not authorized: it has none."""
    if request is not None and request.status != RequestStatus.AUTHORIZED:
        return None
    newest = proposal.executions.select_related("grant").order_by("-queued_at")
    return newest.first()


def format_timestamp(at: datetime | None) -> str | None:
    """Format a time as RFC 3339 in UTC with milliseconds."""
    return None if at is None else clock.format_instant(at)


def is_final(described: dict[str, Any]) -> bool:
    """Whether a proposal's JSON gives a waiting agent something to do now."""
    return described["status"] in FINAL_STATUSES or described["grant"] is not None


def _build_policy(revision: Revision) -> dict[str, Any]:
    rules = revision.evaluation.get("rules", [])
    return {
        "version": revision.policy_number,
        "rules": [{"id": rule["id"], "text": rule["text"]} for rule in rules],
    }


def _build_request(request: ApprovalRequest, undecided: bool) -> dict[str, Any]:
    filled: list[int | None] = []  # the step of each vote on the newest version
    if not undecided:
        filled = _FILLED_STEPS.fetch_all(request=request.pk, version=request.version)
    return {
        "id": request.pk,
        "url": f"{settings.COUNTERSEAL.base_url}/requests/{request.pk}/",
        "version": request.version,
        "expires_at": format_timestamp(request.expires_at),
        "steps": [
            {
                "role": step["role"],
                "required": step["required"],
                "given": filled.count(index),
            }
            for index, step in enumerate(request.sealed.steps)
        ],
    }


_FILLED_STEPS = PreparedQuery(
    lambda: Decision.objects.filter(
        request_id=Parameter("request"), version=Parameter("version"), counts=True
    ).values_list("step", flat=True)
)


def _build_grant(execution: Execution | None) -> dict[str, Any] | None:
    if execution is None or not execution.by_agent or not _is_redeemable(execution):
        return None
    return {
        "token": tokens.load_token(execution.grant_id),
        "expires_at": format_timestamp(execution.grant.expires_at),
        "not_before": format_timestamp(execution.grant.not_before),
    }


def _is_redeemable(execution: Execution) -> bool:
    """Whether the agent may redeem the grant: for the first time, or again after its
    lease has ended, because an agent may die during the attempt."""
    if execution.status != ExecutionStatus.CLAIMED:
        return execution.status == ExecutionStatus.QUEUED
    now, until = clock.now(), execution.lease_until
    if until is None or until > now or claims.find_end_code(execution, now):
        return False
    return execution.execution_class is not ExecutionClass.OPAQUE


_NEWEST_DECISION = PreparedQuery(
    lambda: Decision.objects.filter(request_id=Parameter("request")).order_by(
        "-at", "-pk"
    )[:1]
)


def build_decision(
    request: ApprovalRequest, revision: Revision
) -> dict[str, Any] | None:
    """Build the verdict that settled the request; None while it is open, or when it was
    settled without one."""
    if request.settled_at is None:
        return None
    last = _NEWEST_DECISION.fetch_first(request=request.pk)
    if last is None or request.status not in DECIDED:
        return None
    # A person's own proposal (a reversal) has a person as author from revision 1 on, so
    # only a later revision by a person is a modification.
    modified = revision.author_kind == "person" and revision.number > 1
    verdict = last.verdict
    if verdict == Verdict.APPROVE and modified:
        verdict = Verdict.MODIFY
    return {
        "verdict": verdict,
        "reason_code": last.reason_code or None,
        "reason": last.reason or None,
        "final_args": revision.args,
        "by_role": last.authority.get("role", Role.REVIEWER),
        "decided_at": format_timestamp(last.at),
    }


def _build_execution(execution: Execution | None) -> dict[str, Any] | None:
    if execution is None:
        return None
    return {
        "id": execution.pk,
        "status": execution.status,
        "result": record.decrypt_result(execution),
        "code": execution.code or None,
        "detail": execution.detail or None,
        "finished_at": format_timestamp(execution.finished_at),
    }


def _find_settled_at(
    proposal: Proposal, request: ApprovalRequest | None, execution: Execution | None
) -> datetime | None:
    if proposal.repeats:
        return proposal.created_at
    if request is not None and request.settled_at is not None:
        return request.settled_at
    return execution.queued_at if execution and request is None else None
