"""Plays the history: people, policies and agents begin, and the cases happen one after
the other, each at its time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agents import keys, registry
from agents.choices import ThreadResult
from agents.models import Agent
from agents.proposals import finish_thread
from agents.registry import NewAgent
from assurance import insertion
from demo.seed import POLICY, TOOLS
from demo.store import database
from journal import clock, log
from policies.models import Person
from reviews.alarms import standing
from reviews.choices import RequestStatus, Verdict
from reviews.executions import redeem, settle
from reviews.grants import tokens
from reviews.models import Alarm, ApprovalRequest, Execution, Proposal
from reviews.tool_services import executors
from world.cast import put_in_force

from . import documents, work
from .cases import Case, PlannedCall, load_cases
from .clock import move_to
from .tools import find_store

DAYS = 30
CREDIT = "issue_store_credit"
# When a rule was added to the policy, and when Harper began, in days before the demo.
HARPER_BEGINS, RULE_ADDED = 24, 16
# Days before the demo, the reviewer and what they make of their canary.
CANARIES = ((8, "rita", Verdict.APPROVE), (5, "tom", Verdict.REJECT))
HARPERS_TOOLS = ("process_refund", "send_email", "delete_customer", CREDIT)
SHIPPED = timedelta(hours=1)  # since when the shipped policy is in force
Event = tuple[datetime, Callable[[], None]]


class Life:
    """The people and agents of the history, and what happens to them."""

    def __init__(
        self,
        people: Mapping[str, Person],
        store_url: str,
        admit: Callable[[], None],
    ) -> None:
        """`people` by their user names. The history ends under the shipped policy, with
        the store at `store_url`."""
        self.people = people
        text = POLICY.read_text("utf-8").replace("${STORE_URL}", store_url)
        self.shipped: dict[str, Any] = yaml.safe_load(text)
        self.first, self.second = documents.build_former_policies(text)
        self.admit = admit
        self.agents: dict[str, Agent] = {}
        self.keys: dict[str, str] = {}
        # The same history at every first start.
        self.chance = random.Random(30)  # noqa: S311 no secret

    def write(self, now: datetime) -> None:
        """Let everything happen until `now`. The clock was set back by `DAYS`."""
        self._activate(self.first, "adam", "alma")
        self._register("riley", "Riley", TOOLS)
        for moment, happen in sorted(self._list_events(now), key=lambda e: e[0]):
            move_to(moment)
            happen()
        move_to(now)
        work.work_off()

    def _list_events(self, now: datetime) -> Iterator[Event]:
        yield (
            now - timedelta(days=HARPER_BEGINS),
            lambda: self._register("harper", "Harper", HARPERS_TOOLS),
        )
        yield (
            now - timedelta(days=RULE_ADDED),
            lambda: self._activate(self.second, "alma", "adam"),
        )
        yield now - SHIPPED, lambda: self._activate(self.shipped, "adam", "alma")
        for days, name, verdict in CANARIES:
            yield now - timedelta(days=days), self._build_canary(name, verdict)
        for case in load_cases(now, _load_mailboxes(find_store())):
            yield case.at, self._build_play(case)

    def _activate(self, document: dict[str, Any], author: str, second: str) -> None:
        people = self.people
        put_in_force(document, people[author], people[second], admit=self.admit)

    def _register(self, slug: str, name: str, tools: tuple[str, ...]) -> None:
        people = self.people
        self.agents[slug] = registry.register_agent(
            new=NewAgent(slug, name, people["owen"], tools, version="1"),
            by=people["adam"],
        )
        self.keys[slug] = keys.issue_key(agent=self.agents[slug], by=people["owen"])

    def _build_play(self, case: Case) -> Callable[[], None]:
        return lambda: self._play(case)

    def _play(self, case: Case) -> None:
        agent, ran = self.agents[case.agent], False
        keys.authenticate_key(self.keys[case.agent])
        for call in case.calls:
            proposal = work.propose(
                agent, case.thread, call.tool, call.args, rationale=call.rationale
            )
            ran = self._decide(proposal, call)
            self._use_grant(proposal, call)
            work.acknowledge(agent, proposal)
        result = ThreadResult.COMPLETED if ran else ThreadResult.GAVE_UP
        finish_thread(agent=agent, name=case.thread, result=result)
        work.work_off()

    def _decide(self, proposal: Proposal, call: PlannedCall) -> bool:
        """Let people decide; whether the call was allowed."""
        request = ApprovalRequest.objects.filter(proposal=proposal).first()
        if request is None:
            return Execution.objects.filter(proposal=proposal).exists()
        for planned in call.verdicts:
            work.pass_time(minutes=self.chance.uniform(2, 14))
            args = dict(call.args) | {"amount": planned.amount, "partial": True}
            work.decide(
                proposal,
                self.people[planned.person],
                planned.verdict,
                code=planned.code,
                reason=planned.reason,
                args=args if planned.verdict is Verdict.MODIFY else None,
            )
        if not call.verdicts:
            work.expire(proposal)
        work.settle_windows()
        request.refresh_from_db()
        return request.status == RequestStatus.AUTHORIZED

    def _use_grant(self, proposal: Proposal, call: PlannedCall) -> None:
        """Let the agent do with an approval what it does: perform the effect and report
        it, not know what became of it, or forget it."""
        if call.became == "unused":
            work.let_grant_lapse(proposal)
            self._close_alarms(call.closed_by)
        elif call.became:
            self._perform(proposal, succeeded=call.became == "done")
            if call.settled_by:
                self._settle(proposal, call.settled_by)

    def _perform(self, proposal: Proposal, *, succeeded: bool) -> None:
        execution = Execution.objects.get(proposal=proposal)
        claim = redeem.redeem_grant(
            token=tokens.load_token(execution.grant_id), agent=proposal.agent
        )
        work.pass_time(seconds=3)
        number = self.chance.randrange(10_000, 99_999)
        redeem.report_outcome(
            execution=claim.execution,
            fence=claim.fence,
            action_hash=claim.execution.grant.action_hash,
            outcome=(
                executors.build_success({"credit_id": f"SC-{number}"})
                if succeeded
                else executors.build_unknown(
                    "timeout", "The loyalty service did not answer in time."
                )
            ),
            actor=log.Actor("agent", proposal.agent),
        )
        work.work_off()

    def _settle(self, proposal: Proposal, by: str) -> None:
        work.pass_time(hours=2)
        settle.settle_unknown(
            execution_id=Execution.objects.get(proposal=proposal).pk,
            person=self.people[by],
            happened=True,
            reason="The loyalty service shows the credit on the customer's account.",
        )
        work.work_off()

    def _close_alarms(self, by: str) -> None:
        work.pass_time(minutes=50)
        for alarm in Alarm.objects.filter(closed_at=None):
            standing.acknowledge_alarm(alarm_id=alarm.pk, person=self.people[by])
            work.pass_time(minutes=20)
            standing.close_alarm(
                alarm_id=alarm.pk,
                person=self.people[by],
                note="Harper was restarted and lost the approval. It asks again.",
            )
        work.work_off()

    def _build_canary(self, name: str, verdict: Verdict) -> Callable[[], None]:
        return lambda: self._meet_canary(self.people[name], verdict)

    def _meet_canary(self, person: Person, verdict: Verdict) -> None:
        clone = insertion.prepare_clone(person, clock.now(), self.chance)
        if clone is None:  # no request fits: the demo begins all the same
            return
        planted = insertion.plant_canary(person=person, clone=clone, next_after=52)
        if planted is None:
            return
        work.pass_time(minutes=4)
        proposal = Proposal.with_canaries.get(pk=planted.proposal_id)
        code = "verified" if verdict is Verdict.APPROVE else "unclear"
        work.decide(proposal, person, verdict, code=code)


def _load_mailboxes(store: Path) -> dict[str, str]:
    """The mailbox of each order's customer."""
    query = (
        "SELECT purchase.id, customer.email FROM purchase"
        " JOIN customer ON customer.id = purchase.customer"
    )
    with database.reading(store) as db:
        return dict(db.execute(query).fetchall())
