"""Access requests and their tasks. An access request is a proposal, and the task is how
the profile sees that proposal; its id is the proposal's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents import idempotency, intake, proposals, representation
from agents.choices import AUTHZEN_SOURCE
from agents.idempotency import StoredAnswer
from agents.models import Agent
from agents.proposals import ProposalInput
from agents.schemas.authzen import AccessRequestIn
from journal import clock
from journal.errors import AlreadyDecided
from reviews.choices import EXECUTION_SPECS
from reviews.models import Proposal

from . import approvals, binding_tokens, entities
from .approvals import StoredAccess
from .entities import AccessTuple
from .errors import InvalidTaskState, NotRequestable, TaskExpired, UnknownTask

PATH = "/access/v1/requests"
# The task's status for each status of a proposal. A grant means approval, whatever
# became of it: what it permits now, an evaluation says.
TASK_STATUSES = {
    **{spec.api_word: "approved" for spec in EXECUTION_SPECS.values()},
    "pending": "pending",
    "rejected": "denied",
    "blocked": "denied",
    "expired": "expired",
    "withdrawn": "cancelled",
    "superseded": "cancelled",
}
TITLES = {
    "pending": "Waiting for people to decide",
    "approved": "Approved",
    "denied": "Denied",
    "expired": "Expired before people decided",
    "cancelled": "Cancelled",
}
# A completion mode of our own. A caller that does not know it must treat the task as
# not approved, and so never performs what the gate performs itself.
PERFORMED_MODE = "urn:counterseal:authzen:performed"
# Beside an approval of other arguments than the requested ones: what was approved.
APPROVED_ACCESS = "urn:counterseal:authzen:approved_access"


def submit_request(
    agent: Agent, header: str | None, body: AccessRequestIn
) -> StoredAnswer:
    """Propose what was denied, or find the answer to an earlier submission with the
    same key. Without a header the evaluation's id is the key. Raises NotRequestable,
    InvalidDenialBinding, ExpiredDenial, and what `intake.build_proposal_input` and
    `proposals.propose_action` raise."""
    if body.denial is None:
        raise NotRequestable
    entities.check_actor(agent, body)
    access = entities.build_access_tuple(body)
    body_json = body.model_dump(mode="json", exclude_unset=True)
    header = header or body.denial.evaluation_id
    key = intake.parse_call_key(header, "POST", PATH, body_json)
    stored = idempotency.find_stored_answer(agent, key)
    if stored is not None:
        return stored
    evaluation_id = binding_tokens.check_denial(
        body.denial, access, agent.slug, clock.now()
    )
    intake.check_key_contents(key)
    with entities.rename_paths(access):
        asked = _build_input(agent, access, evaluation_id, body)
        return proposals.propose_action(agent=agent, key=key, asked=asked)


def _build_input(
    agent: Agent, access: AccessTuple, evaluation_id: str, body: AccessRequestIn
) -> ProposalInput:
    proposal = entities.build_proposal(
        agent,
        access,
        evaluation_id,
        rationale=body.context.business_justification,
        urgent=body.requested_access.emergency,
        checkpoint=approvals.build_checkpoint(evaluation_id, access),
    )
    asked = intake.build_proposal_input(agent, proposal)
    return replace(asked, origin=replace(asked.origin, source=AUTHZEN_SOURCE))


def cancel_task(agent: Agent, task_id: str) -> dict[str, Any]:
    """Withdraw the proposal of a pending task, and build the task. Raises UnknownTask,
    TaskExpired, InvalidTaskState."""
    if build_task_json(agent, task_id)["task"]["status"] != "pending":
        raise InvalidTaskState
    try:
        proposals.withdraw_proposal(agent=agent, proposal_id=task_id)
    except AlreadyDecided:  # decided since the task was read
        raise InvalidTaskState from None
    return build_task_json(agent, task_id)


def build_task_json(agent: Agent, task_id: str) -> dict[str, Any]:
    """Build the JSON object `TaskResponse`. Raises UnknownTask for anything but an
    access request of this agent, TaskExpired once its run's state is erased."""
    proposal = representation.find_proposal(agent.slug, task_id)
    if proposal is None or proposal.source != AUTHZEN_SOURCE:
        raise UnknownTask
    stored = approvals.load_stored_access(proposal)
    if stored is None:
        raise TaskExpired
    described = representation.build_proposal_json(proposal)
    status = TASK_STATUSES[described["status"]]
    answer = {"task": _build_task(proposal, described, status)}
    if status == "approved":
        answer["result"] = _build_result(proposal, stored, described)
    return answer


def _build_task(
    proposal: Proposal, described: Mapping[str, Any], status: str
) -> dict[str, Any]:
    endpoint = f"{settings.COUNTERSEAL.base_url}{PATH}/{proposal.pk}"
    task: dict[str, Any] = {
        "id": proposal.pk,
        "status": status,
        "status_endpoint": endpoint,
        "display": _build_display(described, status),
    }
    if status == "pending":
        most = proposal.request.expires_at_most
        task["expires_at"] = representation.format_timestamp(most)
        task["progress"] = _build_progress(described["request"]["steps"])
        review = described["request"]["url"]
        task["links"] = {"cancel": f"{endpoint}/cancel", "review": review}
    return task


def _build_progress(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The first step that lacks approvals. All steps are open at the same time; the
    profile counts them as if they followed one another."""
    filled = [step["given"] >= step["required"] for step in steps]
    current = filled.index(False) if False in filled else len(steps) - 1
    return {
        "current_step": current + 1,
        "total_steps": len(steps),
        "step_name": steps[current]["role"],
    }


def _build_display(described: Mapping[str, Any], status: str) -> dict[str, str]:
    decision = described["decision"]
    reason = decision["reason"] or decision["reason_code"] if decision else None
    rules = " ".join(rule["text"] for rule in described["policy"]["rules"])
    description = rules if described["status"] == "blocked" else reason
    return {
        "title": TITLES[status],
        **({"description": description} if description else {}),
    }


def _build_result(
    proposal: Proposal, stored: StoredAccess, described: Mapping[str, Any]
) -> dict[str, Any]:
    approval = approvals.find_approval_of(proposal, stored)
    if approval is None:
        raise LookupError(f"{proposal} is approved and has no grant.")
    if not approval.execution.by_agent:
        return {"mode": PERFORMED_MODE, "execution": described["execution"]}
    built = approvals.build_approval_json(approval)
    result: dict[str, Any] = {"mode": "reevaluate", "approval": built}
    if approval.access.compute_hash() != approval.requested.compute_hash():
        result[APPROVED_ACCESS] = approval.access.build_json()
    return result
