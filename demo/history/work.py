"""What agents, people and workers do in the history: each is the operation that does it
in the product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django.utils.module_loading import import_string

from agents import acknowledgements, intake, proposals, representation
from agents.models import Agent
from agents.schemas.proposals import ProposalIn
from hitl import celery, tasks
from journal import clock, outbox
from journal.models import OutboxMessage
from journal.prepared_queries import PreparedQuery
from notifications import delivery, plan
from notifications.events import EVENTS
from policies.models import Person
from reviews import deadlines
from reviews.alarms import watch
from reviews.choices import ReasonCode, Verdict
from reviews.decisions.decide import decide_request
from reviews.decisions.submission import StepUpProof, VerdictSubmission
from reviews.models import ApprovalRequest, Execution, Notice, Proposal

from .clock import move_to

app = celery.app  # the nudges go to its broker
MOST_ROUNDS = 5  # of messages that publish other messages
NOTIFY = "hitl.tasks.notify_people"
_DUE = PreparedQuery(
    lambda: OutboxMessage.objects.filter(outbox.build_claimable_filter()).order_by("pk")
)


def pass_time(**distance: float) -> None:
    """Let the clock of the history go on."""
    move_to(clock.now() + timedelta(**distance))


def propose(
    agent: Agent, thread: str, tool: str, args: Mapping[str, Any], **told: Any
) -> Proposal:
    """Propose one call as the agent; `told` has the other fields of the body."""
    body = ProposalIn.model_validate(
        {"thread": thread, "tool": tool, "args": dict(args), **told}
    )
    number = Proposal.objects.filter(agent=agent.slug, thread=thread).count()
    key = intake.parse_call_key(
        f"{agent.slug}:{thread}:{number}", "POST", "/proposals", body.model_dump()
    )
    asked = intake.build_proposal_input(agent, body)
    if asked.reading is not None:  # it was read by the clock of this machine
        asked = replace(asked, reading=replace(asked.reading, at=clock.now()))
    stored = proposals.propose_action(agent=agent, key=key, asked=asked)
    work_off()
    return Proposal.objects.get(pk=stored.proposal)


def decide(
    proposal: Proposal,
    person: Person,
    verdict: Verdict,
    *,
    code: ReasonCode | str = "",
    reason: str = "",
    args: Mapping[str, Any] | None = None,
) -> None:
    """Give a person's verdict, after they confirmed who they are."""
    request = ApprovalRequest.with_canaries.get(proposal=proposal)
    plain = VerdictSubmission(
        request_id=request.pk,
        person=person,
        verdict=verdict,
        version=request.version,
        action_hash=request.action_hash,
        reason_code=str(code),
        reason=reason,
        args=args,
    )
    proof = StepUpProof("password", clock.now(), plain.bound.digest)
    decide_request(replace(plain, step_up=proof))
    work_off()


def settle_windows() -> None:
    """Let the recall windows that are open end, and the effects begin."""
    pass_time(seconds=12)
    deadlines.close_recall_windows()
    work_off()


def expire(proposal: Proposal) -> None:
    """Let the time of a request pass without a decision."""
    move_to(
        ApprovalRequest.objects.get(proposal=proposal).expires_at + timedelta(seconds=1)
    )
    tasks.expire_due()
    work_off()


def let_grant_lapse(proposal: Proposal) -> None:
    """Let the window of an approval pass that its agent does not use, and let the sweep
    of the alarms see it."""
    execution = Execution.objects.select_related("grant").get(proposal=proposal)
    move_to(execution.grant.expires_at + timedelta(minutes=2))
    tasks.run_execution(execution.pk)
    watch.sweep_alarms()
    work_off()


def acknowledge(agent: Agent, proposal: Proposal) -> None:
    """Let the agent say that it knows what became of its proposal, if anything did."""
    row = representation.find_proposal(agent.slug, proposal.pk)
    assert row is not None
    outcome = representation.build_proposal_json(row)["outcome"]
    if outcome:
        acknowledgements.acknowledge_outcome(
            agent=agent, proposal_id=proposal.pk, outcome=outcome
        )


def work_off() -> None:
    """Do what the outbox promises by now, as the workers do. Notices are not sent."""
    for _ in range(MOST_ROUNDS):
        messages = _DUE.fetch_all()
        for message in messages:
            if message.task == NOTIFY:
                _notify(message)
            else:
                import_string(message.task)(message.pk)
        noticed = [message.pk for message in messages if message.task == NOTIFY]
        if noticed:
            OutboxMessage.objects.filter(pk__in=noticed).update(
                done_at=Now(), attempts=1
            )
        if len(noticed) == len(messages):  # these publish nothing that is due
            return


def _notify(message: OutboxMessage) -> None:
    """Plan the notices of an event. Those that are due count as sent or as dropped:
    delivering each to nobody took a third of the time of the whole history."""
    audience = plan.find_audience(message)
    if audience is None:
        return
    due = plan.plan_for_audience(audience, EVENTS[message.topic].kind)
    people = {person.pk: person for person in audience.people}
    dropped = defaultdict(list)
    for notice in due:
        if notice.person_id is not None:
            notice.person = people[notice.person_id]
        notice.request = audience.about.get("request")
        dropped[delivery.find_drop_reason(notice)].append(notice.pk)
    sent = dropped.pop("", [])
    Notice.objects.filter(pk__in=sent).update(sent_at=Now(), attempts=1)
    for reason, pks in dropped.items():
        Notice.objects.filter(pk__in=pks).update(let_go=reason)
