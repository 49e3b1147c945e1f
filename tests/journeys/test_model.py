"""Whatever people, agents, workers and time do, in whatever order: the gate and a small
automaton in memory say the same (T1)."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from journal import clock, log
from journal.errors import DomainError
from reviews import deadlines
from reviews.choices import Scope, StopMode
from reviews.decisions import recall as recalls
from reviews.executions import claims
from reviews.executions import record as executions
from reviews.executions import run as executions_run
from reviews.executions import settle as settlements
from reviews.executions.redeem import redeem_grant
from reviews.grants import tokens
from reviews.holds import take
from reviews.models import ApprovalRequest, Execution, Grant, Proposal, Stop
from reviews.requests import proposals
from reviews.stops import scope as stop_work
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories, guards, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.journeys import comparing
from tests.journeys.automaton import ROLES, Modelled, Refused, Switches
from tests.reviews import states

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

TOOLS = ["pay", "pay_queryable", "pay_opaque", "deploy"]
MOST = 4  # proposals in one run
# Where a guard is missing it is enough that something differs (tests/mutants).
SEARCHES = "MODEL_SEARCHES" in os.environ
which = st.integers(0, MOST - 1)
granted = precondition(lambda self: any(m.execution for _, m in self.rows))
who = st.sampled_from(sorted(ROLES))
scopes = st.sampled_from([Scope.THREAD, Scope.AGENT, Scope.TOOL, Scope.EVERYTHING])
modes = st.sampled_from(StopMode)
REAL = {"pay": worlds.keyed, "pay_queryable": worlds.plain, "pay_opaque": worlds.plain}

OUTCOMES = {
    "succeeded": EffectOutcome("succeeded", {}),
    "failed": EffectOutcome("failed"),
    "unknown": EffectOutcome("unknown"),
}


class GateMachine(RuleBasedStateMachine):
    """Every rule is done to the gate and to the automaton; each answer and, after every
    step, every row is compared."""

    def __init__(self, gate: Gate, counted: Counter[str]) -> None:
        super().__init__()
        self.gate, self.counted = gate, counted
        self.mark = transaction.savepoint()
        self.rows: list[tuple[Proposal, Modelled]] = []
        self.numbers = itertools.count(1)
        self.switches = Switches()
        with worlds.ledger() as ledger:
            ledger.executescript("DELETE FROM effect; DELETE FROM kept")

    def teardown(self) -> None:
        comparing.check_log([proposal.pk for proposal, _ in self.rows])
        transaction.savepoint_rollback(self.mark)

    def both(self, real: Callable[[], Any], model: Callable[[], Any]) -> Any:
        """The same answer from both: done, or refused with the same code."""
        expected = value = said = None
        try:
            model()
        except Refused as refused:
            expected = str(refused)
        try:
            value = real()
        except DomainError as error:
            said = error.code
        assert said == expected
        return value

    def at(self, index: int) -> tuple[Proposal, ApprovalRequest, Modelled]:
        proposal, modelled = self.rows[index % len(self.rows)]
        request = ApprovalRequest.objects.get(proposal=proposal)
        return request.proposal, request, modelled

    def args(self, tool: str, big: bool) -> dict[str, Any]:
        """Never the same twice, so that every edit is a change."""
        number = next(self.numbers)
        if tool == "deploy":
            return {"ref": f"v{number}"}
        amount = f"{(600 if big else 1) + number / 100:.2f}"
        return {"customer": "C-1", "amount": amount, "currency": "USD"}

    # The agent.

    @initialize(tools=st.permutations(TOOLS), big=st.booleans(), yes=st.integers(0, 2))
    def begin(self, tools: list[str], big: bool, yes: int) -> None:
        """Two wait, of which none, one or both are soon granted."""
        for number, tool in enumerate(tools[:2]):
            self.propose(tool, big)
            if number < yes:
                self.everybody_approves(number)

    @precondition(lambda self: len(self.rows) < MOST)
    @rule(tool=st.sampled_from(TOOLS), big=st.booleans())
    def propose(self, tool: str, big: bool) -> None:
        number = len(self.rows)
        args = self.args(tool, big)
        if tool != "deploy":
            args["customer"] = f"C-{number}"
        thread = f"t-{number}"
        proposal = self.both(
            partial(propose, self.gate.agent, tool, args=args, thread=thread),
            partial(self.switches.check_may_propose, self.keys(thread, tool)),
        )
        if proposal:
            self.rows.append((proposal, Modelled(tool, big)))
            self.switch()

    @rule(index=which, big=st.booleans())
    def revise(self, index: int, big: bool) -> None:
        proposal, _, modelled = self.at(index)
        args = self.edited(proposal, modelled, big)
        revision = partial(factories.revised, self.gate.agent, proposal, args)
        self.both(revision, partial(modelled.revise, big))

    def edited(self, proposal: Proposal, modelled: Modelled, big: bool) -> Any:
        args = self.args(modelled.tool, big)
        if "customer" in args:
            args["customer"] = proposal.current.args["customer"]
        return args

    @rule(index=which)
    def withdraw(self, index: int) -> None:
        proposal, _, modelled = self.at(index)
        self.both(
            partial(states.withdraw, self.gate.agent, proposal), modelled.withdraw
        )

    # People.

    @rule(index=which, person=who)
    def approve(self, index: int, person: str) -> None:
        _, request, modelled = self.at(index)
        self.both(
            partial(decide, request, self.gate.people[person]),
            partial(modelled.approve, person),
        )

    @rule(index=which)
    def everybody_approves(self, index: int) -> None:
        """Each in turn as far as it goes; then the recall window closes."""
        for person in ("rita", "tom", "sue", "sam"):
            self.approve(index, person)
        self.close_the_window(index)
        self.sweep_windows()

    @rule(index=which, person=who)
    def reject(self, index: int, person: str) -> None:
        _, request, modelled = self.at(index)
        self.both(
            partial(decide, request, self.gate.people[person], "reject"),
            partial(modelled.reject, person),
        )

    @rule(index=which, person=who)
    def escalate(self, index: int, person: str) -> None:
        _, request, modelled = self.at(index)
        self.both(
            partial(decide, request, self.gate.people[person], "escalate"),
            partial(modelled.escalate, person),
        )

    @rule(index=which, person=who, big=st.booleans())
    def modify(self, index: int, person: str, big: bool) -> None:
        proposal, request, modelled = self.at(index)
        args = self.edited(proposal, modelled, big)
        self.both(
            partial(decide, request, self.gate.people[person], "modify", args=args),
            partial(modelled.modify, person, big),
        )

    @rule(index=which, person=who)
    def recall(self, index: int, person: str) -> None:
        _, request, modelled = self.at(index)
        person_ = self.gate.people[person]
        self.both(
            partial(recalls.recall_approval, request_id=request.pk, person=person_),
            partial(modelled.recall_by, person),
        )
        if modelled.held_by == person:
            modelled.held_since = next(self.numbers)
            self.make_room(person)

    def make_room(self, person: str) -> None:
        """Of more than three in one hand, the one taken first is free again."""
        held = [m for _, m in self.rows if m.held_by == person]
        waiting = [m for m in held if m.status == "pending"]
        waiting.sort(key=lambda modelled: modelled.held_since)
        for modelled in waiting[: -take.MAX_HOLDS]:
            modelled.held_by = ""

    # Time.

    @rule(index=which)
    def pass_the_deadline(self, index: int) -> None:
        _, request, modelled = self.at(index)
        factories.overdue(request)
        modelled.late = True

    @rule()
    def expire(self) -> None:
        deadlines.expire_chunk()
        for _, modelled in self.rows:
            modelled.expire()

    @rule(index=which)
    def close_the_window(self, index: int) -> None:
        _, request, modelled = self.at(index)
        if modelled.status == "recallable":
            past = clock.now() - timedelta(seconds=1)
            ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)
            modelled.window_over = True

    @rule()
    def sweep_windows(self) -> None:
        deadlines.close_recall_windows()
        for _, modelled in self.rows:
            modelled.close()

    @granted
    @rule(index=which, really=st.sampled_from([True, False, False, False]))
    def end_the_execution_window(self, index: int, really: bool) -> None:
        if really:
            execution, modelled = self.granted_at(index)
            past = clock.now() - timedelta(seconds=1)
            worlds.rewrite(Grant, execution.grant_id, expires_at=past)
            modelled.expired_grant = True

    @granted
    @rule(index=which)
    def wait(self, index: int) -> None:
        """The lease lapses; what was queued again is due."""
        execution, modelled = self.granted_at(index)
        past = clock.now() - timedelta(seconds=1)
        rows = Execution.objects.filter(pk=execution.pk)
        rows.filter(status="claimed").update(lease_until=past)
        rows.filter(status="queued").update(due_at=past)
        modelled.lease_over = modelled.execution == "claimed"
        modelled.resting = False

    # Switches.

    @rule(index=which, scope=scopes, mode=modes, enforced=st.booleans())
    def stop(self, index: int, scope: Scope, mode: StopMode, enforced: bool) -> None:
        key = self.key(scope, index)
        alma = self.gate.people["alma"]
        row = self.both(
            partial(
                stops.create_stop,
                scope=scope,
                key=key,
                mode=mode,
                person=alma,
                reason="odd",
            ),
            partial(self.switches.turn_off, scope, key, mode),
        )
        self.switch()
        under = [
            modelled
            for number, (_, modelled) in enumerate(self.rows)
            if self.key(scope, number) == key
        ]
        if row and mode is StopMode.STOPPED:
            for modelled in under:
                modelled.stopped()
        if row and enforced:
            for found in stop_work.list_proposals_to_withdraw(row):
                proposals.withdraw_stopped_proposal(proposal_id=found, code="stopped")
            for modelled in under:
                modelled.enforce(mode)

    @rule(index=which, scope=scopes, person=st.sampled_from(["adam", "alma"]))
    def lift(self, index: int, scope: Scope, person: str) -> None:
        key = self.key(scope, index)
        for row in Stop.objects.filter(scope=scope, key=key, lifted_at=None):
            who = self.gate.people[person]
            self.both(
                partial(stops.lift_stop, stop_id=row.pk, person=who, reason="fine"),
                partial(self.switches.turn_on, scope, key, person),
            )
        self.switch()

    def key(self, scope: Scope, index: int) -> str:
        """Of the switch of this kind over one of the proposals."""
        proposal, modelled = self.rows[index % len(self.rows)]
        return self.keys(proposal.thread, modelled.tool)[scope]

    def keys(self, thread: str, tool: str) -> dict[str, str]:
        run = stops.build_thread_key("riley", thread)
        wide: dict[str, str] = {Scope.AGENT: "riley", Scope.EVERYTHING: ""}
        return {**wide, Scope.THREAD: run, Scope.TOOL: tool}

    def switch(self) -> None:
        for proposal, modelled in self.rows:
            keys = self.keys(proposal.thread, modelled.tool)
            modelled.stop = self.switches.over(keys)

    # The worker, and the agent that performs by itself.

    def granted_at(self, index: int) -> tuple[Execution, Modelled]:
        """One of those that were granted."""
        rows = [row for row in self.rows if row[1].execution]
        proposal, modelled = rows[index % len(rows)]
        return Execution.objects.get(proposal=proposal), modelled

    @granted
    @rule(index=which)
    def run(self, index: int) -> None:
        execution, modelled = self.granted_at(index)
        self.both(partial(executions_run.run_execution, execution.pk), modelled.run)

    @granted
    @rule(index=which, after_effect=st.booleans())
    def die(self, index: int, after_effect: bool) -> None:
        """A worker claims and is gone, before its effect or after it."""
        execution, modelled = self.granted_at(index)
        taken: list[bool | None] = []
        claim = self.both(
            partial(
                claims.claim_execution,
                execution_id=execution.pk,
                actor=claims.EXECUTOR_ACTOR,
            ),
            lambda: taken.append(modelled.take()),
        )
        assert (claim is None) == (taken[0] is None)
        found_already = not taken[0] and modelled.tool != "pay" and modelled.effects
        begins = not modelled.stop and not modelled.over
        if claim and after_effect and begins and not found_already:
            REAL[modelled.tool](claim.call)
            modelled.happen()

    @granted
    @rule(index=which, after_effect=st.booleans())
    def die_and_be_succeeded(self, index: int, after_effect: bool) -> None:
        self.die(index, after_effect)
        self.wait(index)
        self.run(index)

    @granted
    @rule(index=which)
    def redeem(self, index: int) -> None:
        execution, modelled = self.granted_at(index)
        if modelled.tool == "deploy":
            token = tokens.load_token(execution.grant_id)
            self.both(
                partial(redeem_grant, token=token, agent="riley"),
                modelled.redeem,
            )

    @granted
    @rule(index=which, behind=st.integers(0, 1), known=st.booleans())
    def record(self, index: int, behind: int, known: bool) -> None:
        """Whoever holds the fence, or held an older one, says what is true."""
        execution, modelled = self.granted_at(index)
        true = "succeeded" if modelled.effects else "failed"
        outcome = true if known else "unknown"
        fence = modelled.fence - behind
        said = partial(
            executions.record_outcome,
            execution_id=execution.pk,
            fence=fence,
            outcome=OUTCOMES[outcome],
            actor=log.SYSTEM,
        )
        self.both(said, partial(modelled.record, fence, outcome))

    @granted
    @rule(index=which, person=who)
    def settle(self, index: int, person: str) -> None:
        execution, modelled = self.granted_at(index)
        happened = modelled.effects > 0
        said = partial(
            settlements.settle_unknown,
            execution_id=execution.pk,
            person=self.gate.people[person],
            happened=happened,
            reason="seen",
        )
        self.both(said, partial(modelled.settle, person, happened))

    @granted
    @rule(index=which, person=who)
    def retry(self, index: int, person: str) -> None:
        execution, modelled = self.granted_at(index)
        person_ = self.gate.people[person]
        self.both(
            partial(
                settlements.retry_execution, execution_id=execution.pk, person=person_
            ),
            partial(modelled.retry, person),
        )

    # What must be the same, and what must always hold.

    @invariant()
    def nothing_differs(self) -> None:
        self.counted["steps"] += 1
        happened = Counter(key for _, key, _ in worlds.effects())
        comparing.check(self.rows, happened, self.gate.people)


# Parts have examples of their own, and may run beside each other.
@pytest.mark.parametrize("part", range(guards.proof_n(1, 2)))
def test_the_gate_and_the_automaton_never_differ(
    part: int,
    gate: Gate,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T1, I3, I18, I19: votes, edits, revisions, deadlines, recalls, stops, crashes,
    stale writers and retries in any order. The model has no second person for an edit:
    tests/reviews/decisions/test_modify.py."""
    states.recall_windows(gate, edit="alone")
    counted: Counter[str] = Counter()
    examples = proof_n(small=25, full=600)
    if SEARCHES:
        examples = 400
    run_state_machine_as_test(
        partial(GateMachine, gate, counted),  # type: ignore[arg-type]  # it is called
        settings=settings(
            max_examples=examples,
            stateful_step_count=proof_n(small=30, full=50),
            deadline=None,
            database=None,
            print_blob=guards.proving(),
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate] if SEARCHES else list(Phase),
        ),
    )
    record_proof(
        "T1",
        f"part {part + 1}: {examples:,} runs of the model, {counted['steps']:,} steps"
        f" that were compared: 0 divergences (at most {300 / counted['steps']:.3f} %)",
    )
