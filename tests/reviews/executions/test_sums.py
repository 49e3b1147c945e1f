"""What a ceiling compares, and how long what people and agents did weighs in the sums
that hold the next of it back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from journal import clock, errors
from policies import money
from policies.models import Observation, Person
from reviews.choices import ExecutionStatus
from reviews.executions import claims, reconcile, redeem, run, settle
from reviews.grants import tokens
from reviews.models import Alarm, ApprovalRequest, Execution, Grant, Proposal
from reviews.tool_services.executors import build_failure, build_success, build_unknown
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.executions.attempts import granted, reported

PAYMENT = {"customer": "C-1", "amount": "90.00", "currency": "USD"}
LOOK_UP = {"path": "tests.worlds.find"}


def vary(gate: Gate, change: Callable[[dict[str, Any]], None]) -> None:
    """The tests' policy with its payment changed."""
    document = factories.document_of_tests()
    change(document["tools"]["pay"])
    factories.policy(gate.people, document)


def charge(pay: dict[str, Any]) -> None:
    """A payment with a fee."""
    added = {"fee": {"type": "string"}, "fee_currency": {"type": "string"}}
    pay["schema"]["properties"] |= added
    pay["money"].append({"amount": "fee", "currency": "fee_currency", "absent": "none"})


def by_agent(pay: dict[str, Any], look_up: dict[str, str] | None = None) -> None:
    """A payment that the agent makes itself."""
    pay["executor"] = {"kind": "agent"}
    if look_up:
        pay |= {"look_up": look_up, "execution_class": "queryable"}


def limited(person: Person, minor: int) -> None:
    Person.objects.filter(pk=person.pk).update(
        ceiling_minor=minor, ceiling_currency="USD"
    )


@pytest.mark.parametrize(("fee", "currency"), [("9000.00", "USD"), ("1.00", "EUR")])
def test_a_ceiling_is_of_all_amounts_of_a_tool_together(
    gate: Gate, fee: str, currency: str
) -> None:
    """In several currencies nobody with a ceiling decides: it is compared with none."""
    vary(gate, charge)
    limited(gate.rita, 50000)
    limited(gate.sue, 50000)
    args = {**PAYMENT, "amount": "10.00", "fee": fee, "fee_currency": currency}
    request = propose(gate.agent, args=args).request
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita if request.tier == "approve" else gate.sue)
    args["fee"], args["fee_currency"] = "1.00", "USD"
    decide(propose(gate.agent, args=args, customer="C-2").request, gate.rita)


def redeemed(gate: Gate, **fields: Any) -> tuple[Execution, Any]:
    execution = granted(gate, args=dict(PAYMENT), **fields)
    token = tokens.load_token(execution.grant_id)
    return execution, redeem.redeem_grant(token=token, agent="riley")


def said_to_fail(gate: Gate) -> Execution:
    execution, claim = redeemed(gate)
    reported(execution, claim.fence, build_failure("declined", "so it says"))
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED
    return execution


def next_tier(gate: Gate) -> str:
    """What the next payment to this customer asks for."""
    run = factories.new_thread()
    proposal = propose(gate.agent, args=dict(PAYMENT), thread=run)
    request: ApprovalRequest = proposal.request
    return request.tier


def test_what_an_agent_redeemed_weighs_on_when_it_says_that_it_failed(
    gate: Gate,
) -> None:
    vary(gate, by_agent)
    said_to_fail(gate)
    assert next_tier(gate) == "escalate"


def test_what_an_agent_redeemed_weighs_on_when_its_retry_is_refused(
    gate: Gate,
) -> None:
    vary(gate, by_agent)
    execution = said_to_fail(gate)
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    with pytest.raises(errors.GrantExpired):
        redeem.redeem_grant(token=tokens.load_token(execution.grant_id), agent="riley")
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.REFUSED
    assert next_tier(gate) == "escalate"


def weighs(execution: Execution) -> bool:
    rows = Observation.objects.filter(proposal=execution.proposal_id, measure="paid")
    return rows.get().counts


def looked_after(execution: Execution) -> bool:
    """Once all of it that was under way is over; whether it was found."""
    execution.refresh_from_db()
    assert execution.ask_at is not None
    assert reconcile.list_due_audits() == []
    Execution.objects.filter(pk=execution.pk).update(ask_at=clock.now())
    assert reconcile.list_due_audits() == [execution.pk]
    found = reconcile.audit_execution(execution.pk)
    assert reconcile.list_due_audits() == []
    return found


def test_what_an_agent_says_failed_weighs_no_more_once_a_look_up_denies_it(
    gate: Gate,
) -> None:
    vary(gate, lambda pay: by_agent(pay, LOOK_UP))
    execution = said_to_fail(gate)
    assert not looked_after(execution)
    assert next_tier(gate) == "approve"


def test_what_an_agent_says_failed_is_an_alarm_where_a_look_up_finds_it(
    gate: Gate,
) -> None:
    vary(gate, lambda pay: by_agent(pay, LOOK_UP))
    execution, claim = redeemed(gate)
    worlds.plain(claim.call)
    reported(execution, claim.fence, build_failure("declined", "so it says"))
    assert looked_after(execution)
    assert Alarm.objects.get().proposal_id == execution.proposal_id
    assert next_tier(gate) == "escalate"


def test_what_happened_after_all_weighs_again(gate: Gate) -> None:
    """A person was sure that it had not, and a late report says that it had."""
    vary(gate, by_agent)
    execution, claim = redeemed(gate)
    reported(execution, claim.fence, build_unknown("no_answer", ""))
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="not there"
    )
    assert not weighs(execution)
    with pytest.raises(errors.StaleFence):
        reported(execution, claim.fence, build_success({"done": 1}))
    assert weighs(execution)
    assert next_tier(gate) == "escalate"


def test_what_ran_without_a_permission_weighs(gate: Gate) -> None:
    """It was refused, and its service has it all the same."""
    execution = granted(gate, "pay_queryable")
    row = Observation.objects.create(
        proposal=execution.proposal_id,
        measure="paid",
        key="C-1",
        at=execution.grant.revision.created_at,
        ran_by=execution.grant.expires_at,
        counts=False,
    )
    past = clock.now() - timedelta(minutes=2)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    run.run_execution(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(finished_at=past)
    worlds.plain(claims.build_look_up_call(Execution.objects.get(pk=execution.pk)))
    assert reconcile.audit_execution(execution.pk)
    row.refresh_from_db()
    assert (row.counts, row.ran) == (True, True)


def test_what_its_service_says_failed_weighs_no_more(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store's own word, not the agent's."""
    execution = granted(gate, args=dict(PAYMENT))
    with monkeypatch.context() as patched:
        patched.setattr(worlds, "keyed", worlds.failing)
        run.run_execution(execution.pk)
    assert next_tier(gate) == "approve"


def test_a_window_counts_from_the_effect(gate: Gate) -> None:
    """However long people took to approve it."""
    execution = granted(gate, args=dict(PAYMENT))
    rows = Observation.objects.filter(proposal=execution.proposal_id, measure="paid")
    two_days_ago = clock.now() - timedelta(days=2)
    rows.update(at=two_days_ago)
    assert next_tier(gate) == "escalate"  # it waits to run
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert rows.get().ran_by == execution.finished_at
    assert next_tier(gate) == "escalate"
    rows.update(ran_by=two_days_ago)
    assert next_tier(gate) == "escalate"  # the two that wait
    Observation.objects.exclude(proposal=execution.proposal_id).update(counts=False)
    assert next_tier(gate) == "approve"


PRICES = {
    "path": "items[*].price",
    "currency": "items[*].currency",
    "absent": "none",
}


def cart(pay: dict[str, Any]) -> None:
    """An order of a customer, whose money stands in a list."""
    item = {
        "type": "object",
        "required": ["price", "currency"],
        "properties": {
            "price": {"type": "string"},
            "currency": {"enum": ["USD", "EUR"]},
        },
    }
    customer = pay["schema"]["properties"]["customer"]
    listed = {"type": "array", "items": item}
    properties = {"customer": customer, "items": listed}
    required = ["customer", "items"]
    pay["schema"] = {"type": "object", "properties": properties, "required": required}
    pay |= {"money": [], "amounts": [PRICES], "effect": "Order {items} for {customer}"}
    del pay["compensation"]


def cancel(pay: dict[str, Any]) -> None:
    """A cancellation: what it gives back only the reader knows."""
    cart(pay)
    del pay["schema"]["properties"]["items"]
    pay["schema"]["required"] = ["customer"]
    pay |= {
        "amounts": [{"fact": "order_total"}],
        "facts": ["order_total", "order_total_currency"],
        "effect": "Cancel the order of {customer}",
    }


def vary_all(gate: Gate, change: Callable[[dict[str, Any]], None], amount: str) -> None:
    """The same for a tool whose arguments hold no amount, and its sum."""
    document = factories.document_of_tests()
    change(document["tools"]["pay"])
    document["measures"]["paid"]["amount"] = amount
    document["rules"] = [rule for rule in document["rules"] if rule["id"] == "pay.sum"]
    factories.policy(gate.people, document)


def ordered(gate: Gate, *prices: str, currency: str = "USD", **fields: Any) -> Proposal:
    items = [{"price": one, "currency": "USD"} for one in prices]
    items[-1]["currency"] = currency
    args = {"customer": "C-1", "items": items}
    return propose(gate.agent, args=args, **fields)


def cancelled(gate: Gate, total: str | None, **fields: Any) -> Proposal:
    known = {"order_total": total, "order_total_currency": "USD"} if total else {}
    worlds.WORLD["facts"] = known
    try:
        run = factories.new_thread()
        return propose(gate.agent, args={"customer": "C-1"}, thread=run, **fields)
    finally:
        del worlds.WORLD["facts"]


def test_a_ceiling_is_of_all_that_a_list_holds(gate: Gate) -> None:
    vary_all(gate, cart, "items[*].price")
    limited(gate.rita, 5000)
    request = ordered(gate, "30.00", "20.01").request
    with pytest.raises(errors.NotPermitted, match="exceeds your approval limit"):
        decide(request, gate.rita)
    decide(ordered(gate, "30.00", "20.00", customer="C-2").request, gate.rita)


def test_a_list_of_several_currencies_escalates_and_is_above_every_ceiling(
    gate: Gate,
) -> None:
    vary_all(gate, cart, "items[*].price")
    limited(gate.sue, 10**9)
    request = ordered(gate, "1.00", "1.00", currency="EUR").request
    revision = request.sealed.revision
    assert (request.tier, revision.amount_minor, revision.currency) == (
        "escalate",
        100,
        "",
    )
    with pytest.raises(errors.NotPermitted, match="in several currencies"):
        decide(request, gate.sue)
    decide(request, gate.sam)


def test_a_sum_is_of_all_that_lists_hold(gate: Gate) -> None:
    vary_all(gate, cart, "items[*].price")
    assert ordered(gate, "30.00", "30.00").request.tier == "approve"
    assert ordered(gate, "30.00", "10.01").request.tier == "escalate"


def test_an_amount_in_a_list_that_is_none_is_refused_with_its_place(gate: Gate) -> None:
    vary_all(gate, cart, "items[*].price")
    with pytest.raises(errors.InvalidArgs) as refused:
        ordered(gate, "30.00", "20.001")
    assert refused.value.errors[0]["path"] == "args.items[1].price"


def test_a_ceiling_is_of_what_only_the_reader_knows(gate: Gate) -> None:
    vary_all(gate, cancel, "before.order_total")
    limited(gate.rita, 5000)
    request = cancelled(gate, "50.01").request
    with pytest.raises(errors.NotPermitted, match="exceeds your approval limit"):
        decide(request, gate.rita)
    decide(cancelled(gate, "50.00", customer="C-2").request, gate.rita)


def test_a_sum_is_of_what_only_the_reader_knows(gate: Gate) -> None:
    vary_all(gate, cancel, "before.order_total")
    assert cancelled(gate, "60.00").request.tier == "approve"
    assert cancelled(gate, "40.01").request.tier == "escalate"


def test_a_retry_counts_what_only_the_reader_knew(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the reading that was approved: nobody is asked again for it."""
    vary_all(gate, cancel, "before.order_total")
    request = cancelled(gate, "60.00").request
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    with monkeypatch.context() as patched:
        patched.setattr(worlds, "keyed", worlds.failing)
        run.run_execution(execution.pk)
    assert cancelled(gate, "40.01").request.tier == "approve"
    with pytest.raises(errors.Conflict, match="requires more approval"):
        settle.retry_execution(execution_id=execution.pk, person=gate.rita)


def test_money_that_the_reader_does_not_say_is_blocked(gate: Gate) -> None:
    vary_all(gate, cancel, "before.order_total")
    assert cancelled(gate, None).blocked_by == "amount.unresolved"


def leave_out(gate: Gate, absent: str) -> None:
    """The tests' payment, of which a call may leave the amount out."""
    document = factories.document_of_tests()
    pay = document["tools"]["pay"]
    pay["schema"] = {**pay["schema"], "required": ["customer"]}
    pay["money"] = [{**pay["money"][0], "absent": absent}]
    pay["effect"] = "Pay[ {amount?} {currency?}] to {customer}"
    del pay["compensation"]
    document["rules"] = [rule for rule in document["rules"] if rule["id"] == "pay.sum"]
    factories.policy(gate.people, document)


def unnamed(gate: Gate, customer: str) -> ApprovalRequest:
    return propose(
        gate.agent, args={"customer": customer}, thread=factories.new_thread()
    ).request


def test_a_call_without_an_amount_is_above_every_ceiling_where_it_moves_everything(
    gate: Gate,
) -> None:
    leave_out(gate, "all")
    limited(gate.sue, money.MAX_MINOR)
    request = unnamed(gate, "C-1")
    with pytest.raises(errors.NotPermitted, match="asks for the whole amount"):
        decide(request, gate.sue)
    assert request.proposal.current.amount_minor == money.WHOLE
    assert next_tier(gate) == "escalate"  # it is in the customer's sum until it ran


def test_a_call_without_an_amount_moves_nothing_where_the_policy_says_so(
    gate: Gate,
) -> None:
    leave_out(gate, "none")
    limited(gate.rita, 1)
    request = unnamed(gate, "C-2")
    assert request.proposal.current.amount_minor is None
    decide(request, gate.rita)
    assert next_tier(gate) == "approve"
