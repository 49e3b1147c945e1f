"""Verifiers of a tool or a queue, as decisions and effects meet them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from journal import errors
from policies.choices import Tier
from policies.documents import InvalidPolicy, parse_document
from policies.models import Queue
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.decisions import moves, preflight
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution
from reviews.tool_services.verifiers import VerifierDemand, VerifierRefusal
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.batches import batching

HERE = "tests.reviews.executions.test_verifier_rechecks"


def notes(sealed: Mapping[str, Any], *, stage: str) -> None:
    """Agrees, and remembers when it was asked."""
    worlds.WORLD.setdefault("asked", []).append(stage)


def keeps(sealed: Mapping[str, Any], *, stage: str) -> None:
    """Agrees, and remembers about what it was asked."""
    worlds.WORLD.setdefault("sealed", []).append(sealed)


def refuses(
    sealed: Mapping[str, Any], *, stage: str, at: str
) -> VerifierRefusal | None:
    return VerifierRefusal("not_today") if stage == at else None


def demands(sealed: Mapping[str, Any], *, stage: str, tier: str) -> VerifierDemand:
    """Asks for this much, whenever and whatever it is asked about."""
    return VerifierDemand(Tier(tier))


def called(name: str, **options: Any) -> dict[str, Any]:
    return {"kind": "callable", "path": f"{HERE}.{name}", "options": options}


def of_queue(gate: Gate, queue: str, *verifiers: dict[str, Any]) -> None:
    document = factories.document_of_tests()
    document["verifiers"] = {queue: list(verifiers)}
    factories.policy(gate.people, document)


def ran(gate: Gate, tool: str = "pay") -> Execution:
    proposal = propose(gate.agent, tool)
    if hasattr(proposal, "request"):
        decide(proposal.request, gate.rita)
    execution = proposal.executions.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return execution


def sending_to_mail() -> dict[str, Any]:
    """The policy of the tests, with the queue `mail` for payments of 39.00."""
    document = factories.document_of_tests()
    rule: dict[str, Any] = {"id": "pay.mail", "text": "To mail.", "tools": ["pay"]}
    rule |= {"when": "args.amount == 3900", "then": {"queue": "mail"}}
    document["rules"].append(rule)
    return document


class TestOfAQueue:
    def test_it_is_asked_before_the_decision_and_before_the_effect(
        self, gate: Gate
    ) -> None:
        of_queue(gate, "money", called("notes"))
        for tool in ("pay", "pay_opaque"):
            assert ran(gate, tool).status == ExecutionStatus.SUCCEEDED
        assert worlds.WORLD["asked"] == ["decision", "effect"] * 2

    def test_it_is_not_asked_about_another_queue(self, gate: Gate) -> None:
        of_queue(gate, "mail", called("notes"))
        assert ran(gate).status == ExecutionStatus.SUCCEEDED
        assert "asked" not in worlds.WORLD

    @pytest.mark.parametrize("queue", ["money", "mail"])
    def test_a_move_asks_those_of_both_queues(self, gate: Gate, queue: str) -> None:
        of_queue(gate, queue, called("notes"))
        request = propose(gate.agent).request
        to = Queue.objects.get(name="mail")
        moves.move_request(
            request_id=request.pk, person=gate.sue, to=to, reason="They know it."
        )
        decide(request, gate.rita)
        run.run_execution(request.proposal.executions.get().pk)
        assert worlds.WORLD["asked"] == ["decision", "effect"]

    def test_it_may_refuse_the_decision(self, gate: Gate) -> None:
        of_queue(gate, "money", called("refuses", at="decision"))
        request = propose(gate.agent).request
        for verdict in ("approve", "modify"):
            with pytest.raises(errors.VerifierRefused):
                decide(request, gate.rita, verdict, args=paying("39.00"))
        request.refresh_from_db()
        assert (request.status, request.version) == (RequestStatus.PENDING, 1)
        decide(request, gate.rita, "reject")

    @pytest.mark.parametrize(("tool", "queue"), [("pay", "money"), ("look", "odd")])
    def test_it_may_refuse_the_effect_also_of_what_nobody_decides(
        self, gate: Gate, tool: str, queue: str
    ) -> None:
        of_queue(gate, queue, called("refuses", at="effect"))
        execution = ran(gate, tool)
        assert (execution.status, execution.code) == ("refused", "verifier")
        assert worlds.effects() == []

    def test_the_policy_in_force_says_who_is_asked(self, gate: Gate) -> None:
        request = propose(gate.agent).request
        of_queue(gate, "money", called("refuses", at="decision"))
        with pytest.raises(errors.VerifierRefused):
            decide(request, gate.rita)

    def test_an_edit_is_verified_where_it_goes_to(self, gate: Gate) -> None:
        document = sending_to_mail()
        document["verifiers"] = {"mail": [called("refuses", at="decision")]}
        factories.policy(gate.people, document)
        request = propose(gate.agent).request
        with pytest.raises(errors.VerifierRefused):
            decide(request, gate.rita, "modify", args=paying("39.00"))
        decide(request, gate.rita, "modify", args=paying("38.00"))

    def test_an_edit_that_another_policy_moves_meanwhile_is_not_decided(
        self, gate: Gate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask = preflight._ask_verifiers

        def ask_and_activate(*given: Any) -> Any:
            found = ask(*given)
            factories.policy(gate.people, sending_to_mail())
            return found

        monkeypatch.setattr(preflight, "_ask_verifiers", ask_and_activate)
        request = propose(gate.agent).request
        with pytest.raises(errors.Conflict):
            decide(request, gate.rita, "modify", args=paying("39.00"))

    def test_an_edit_is_verified_by_what_it_makes(self, gate: Gate) -> None:
        of_queue(gate, "money", called("keeps"))
        request = propose(gate.agent).request
        decide(request, gate.rita, "modify", args=paying("600.00"))
        request.refresh_from_db()
        (seen,) = worlds.WORLD["sealed"]
        assert seen["action_hash"] == request.action_hash
        assert (seen["tier"], seen["args"]["amount"]) == ("escalate", "600.00")

    def test_a_batch_asks_the_verifiers_of_its_queue(self, gate: Gate) -> None:
        of_queue(gate, "money", called("refuses", at="decision"))
        batch = batching.formed(gate)
        with pytest.raises(errors.VerifierRefused):
            batching.decide(batch, gate.rita)

    def test_the_queue_that_a_rule_names_counts(self, gate: Gate) -> None:
        document = factories.document_of_tests()
        document["verifiers"] = {"odd": [called("refuses", at="decision")]}
        document["rules"][0] |= {"when": "args.amount > 1", "then": {"queue": "odd"}}
        factories.policy(gate.people, document)
        with pytest.raises(errors.VerifierRefused):
            decide(propose(gate.agent).request, gate.rita)

    @pytest.mark.parametrize(
        ("verifiers", "path"),
        [
            ({"nowhere": []}, "verifiers.nowhere"),
            ({"money": [{"kind": "callable"}]}, "verifiers.money.0.path"),
            ({"money": [called("notes") | {"more": 1}]}, "verifiers.money.0"),
            ({"money": {}}, "verifiers.money"),
        ],
    )
    def test_the_document_is_checked(
        self, verifiers: dict[str, Any], path: str
    ) -> None:
        document = factories.document_of_tests() | {"verifiers": verifiers}
        with pytest.raises(InvalidPolicy) as refused:
            parse_document(document)
        assert refused.value.errors[0]["path"].startswith(path)


class TestMoreAuthority:
    """What a verifier asks for is asked for once."""

    def test_it_is_escalated_once_and_then_met(self, gate: Gate) -> None:
        of_queue(gate, "money", called("demands", tier="escalate"))
        request = propose(gate.agent).request
        decide(request, gate.rita)
        request.refresh_from_db()
        assert (request.tier, request.sealed.cause) == (Tier.ESCALATE, "verifier")
        decide(request, gate.tom)
        decide(request, gate.sue)
        request.refresh_from_db()
        assert (request.status, request.version) == (RequestStatus.AUTHORIZED, 2)
        execution = Execution.objects.get()
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert execution.status == ExecutionStatus.SUCCEEDED

    @pytest.mark.parametrize("tier", ["auto", "notify", "approve"])
    def test_what_the_policy_asks_for_already_is_met(
        self, gate: Gate, tier: str
    ) -> None:
        of_queue(gate, "money", called("demands", tier=tier))
        assert ran(gate).status == ExecutionStatus.SUCCEEDED

    def test_two_supervisors_by_policy_are_not_asked_for_a_third(
        self, gate: Gate
    ) -> None:
        of_queue(gate, "money", called("demands", tier="escalate"))
        request = propose(gate.agent, amount="600.00").request
        for person in (gate.sue, gate.sam):
            decide(request, person)
        request.refresh_from_db()
        assert (request.status, request.version) == (RequestStatus.AUTHORIZED, 1)

    def test_an_edit_asks_for_what_is_demanded_and_is_kept(self, gate: Gate) -> None:
        of_queue(gate, "money", called("demands", tier="escalate"))
        request = propose(gate.agent).request
        decide(request, gate.rita, "modify", args=paying("39.00"))
        request.refresh_from_db()
        assert (request.tier, request.version) == (Tier.ESCALATE, 2)
        assert request.sealed.revision.args["amount"] == "39.00"
        assert not request.decisions.filter(version=2, counts=True).exists()
        decide(request, gate.tom)
        decide(request, gate.sue)
        assert finished(request)

    def test_a_supervisors_edit_lowers_nothing_that_is_demanded(
        self, gate: Gate
    ) -> None:
        of_queue(gate, "money", called("demands", tier="escalate"))
        request = propose(gate.agent, amount="899.00").request
        decide(request, gate.sue, "modify", args=paying("449.50"))
        request.refresh_from_db()
        assert (request.tier, request.status) == (Tier.ESCALATE, RequestStatus.PENDING)
        decide(request, gate.sam)
        assert finished(request)

    @pytest.mark.parametrize(("tool", "queue"), [("pay", "money"), ("look", "odd")])
    def test_before_the_effect_less_than_asked_is_a_refusal(
        self, gate: Gate, tool: str, queue: str
    ) -> None:
        proposal = propose(gate.agent, tool)
        if tool == "pay":
            decide(proposal.request, gate.rita)
        of_queue(gate, queue, called("demands", tier="escalate"))
        execution = proposal.executions.get()
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert (execution.status, execution.code) == ("refused", "verifier")


def finished(request: ApprovalRequest) -> bool:
    request.refresh_from_db()
    execution = Execution.objects.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return (request.status, execution.status) == ("authorized", "succeeded")


def paying(amount: str) -> dict[str, Any]:
    return {"customer": "C-1", "amount": amount, "currency": "USD"}
