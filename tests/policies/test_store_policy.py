"""The shipped store policy: a test for every tool and for every rule, at its figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.choices import Role, Tier
from policies.evaluation import RequiredStep
from policies.models import Tool
from policies.tools import list_argument_errors
from tests.policies import store
from tests.policies.store import SATURDAY_NIGHT, ids, judge

OWN = "desk@northgate-electronics.example"
TEST = "qa@northgate-electronics.example"
OUTSIDE = "casey@mail.example"


def refund(amount, **changes):
    return judge("process_refund", {"amount": amount}, **changes)


def hours(tool, args=None, **changes):
    return judge(tool, args, document=store.with_hours(), **changes)


# The tools of the demo store, with the risk and the tier that its policy gives them.
@pytest.mark.parametrize(
    ("tool", "risk", "tier"),
    [
        ("look_up_order", "low", "auto"),
        ("check_inventory", "low", "auto"),
        ("draft_reply", "low", "auto"),
        ("add_label", "medium", "notify"),
        ("send_email", "high", "approve"),
        ("create_return_label", "high", "approve"),
        ("process_refund", "high", "approve"),
        ("change_shipped_address", "critical", "escalate"),
        ("delete_customer", "critical", "escalate"),
    ],
)
def test_tool_has_the_risk_and_tier_of_the_table(tool, risk, tier):
    outcome = judge(tool)
    assert (outcome.risk, outcome.tier) == (risk, tier)


def test_there_are_the_nine_tools_of_the_table_and_each_takes_its_example():
    assert set(store.shipped().tools) == set(store.ARGS)
    for name, tool in store.shipped().tools.items():
        row = Tool(name=name, digest=name, definition=tool.model_dump(by_alias=True))
        assert list_argument_errors(row, store.ARGS[name]) == []
        assert list_argument_errors(row, {**store.ARGS[name], "extra": 1}) == [
            {"path": "args.extra", "message": "this is not an argument of the tool"}
        ]


@pytest.mark.parametrize("subject", ["Hi\r\nBcc: eve@evil.example", "Hi\n", "a\rb"])
def test_a_subject_is_one_line(subject):
    tool = store.shipped().tools["send_email"]
    row = Tool(name="m", digest="m", definition=tool.model_dump(by_alias=True))
    args = store.ARGS["send_email"]
    [error] = list_argument_errors(row, {**args, "subject": subject})
    assert error["path"] == "args.subject"
    assert list_argument_errors(row, {**args, "body": "Hi\r\nBcc: nobody\n"}) == []


def test_every_rule_of_the_policy_is_tested_here():
    source = Path(__file__).read_text()
    for rule in store.shipped().rules:
        assert f'"{rule.id}"' in source, rule.id


def test_return_labels_and_refunds_are_batchable():
    batchable = {n for n, tool in store.shipped().tools.items() if tool.batchable}
    assert batchable == {"create_return_label", "process_refund"}


def test_one_reviewer_approves_and_two_supervisors_escalate():
    assert refund("500.00").steps == (RequiredStep(Role.REVIEWER, 1),)
    assert refund("500.01").steps == (RequiredStep(Role.SUPERVISOR, 2),)
    assert refund("500.01").step_up
    assert not refund("500.00").step_up


# Refunds.
def test_refund_over_500_escalates():
    assert "refund.over_500" not in ids(refund("500.00"))
    outcome = refund("899.00")
    assert outcome.tier is Tier.ESCALATE
    assert ids(outcome) == {"refund.over_500"}
    assert outcome.risk == "high"


def test_second_refund_that_brings_the_customer_above_100_escalates():
    rule = "refund.rolling_sum"
    assert refund("49.00").tier is Tier.APPROVE
    assert refund("49.00", earlier=[4900]).tier is Tier.APPROVE
    third = refund("49.00", earlier=[4900, 4900])
    assert third.tier is Tier.ESCALATE
    assert ids(third) == {rule}
    assert refund("51.00", earlier=[4900]).tier is Tier.APPROVE
    assert ids(refund("51.01", earlier=[4900])) == {rule}
    assert ids(refund("0.01", earlier=[30000])) == {rule}
    assert refund("300.00").tier is Tier.APPROVE  # a first one, however large


def test_refunds_of_an_order_never_exceed_its_total():
    assert refund("899.00").tier is Tier.ESCALATE
    over = refund("899.01")
    assert over.tier is Tier.BLOCK
    assert "refund.over_order" in ids(over)
    assert refund("400.00", earlier=[49900]).tier is Tier.ESCALATE
    assert "refund.over_order" in ids(refund("400.01", earlier=[49900]))


def test_refund_never_exceeds_what_the_ledger_has_left():
    before = {**store.ORDER, "order_refunded": 85000}
    assert refund("49.00", before=before).tier is Tier.APPROVE
    over = refund("49.01", before=before)
    assert over.tier is Tier.BLOCK
    assert ids(over) == {"refund.over_ledger"}


def test_refund_above_ten_thousand_is_blocked():
    before = {**store.ORDER, "order_total": 5_000_000}
    assert refund("10000.00", before=before).tier is Tier.ESCALATE
    over = refund("10000.01", before=before)
    assert over.tier is Tier.BLOCK
    assert "refund.over_10000" in ids(over)


def test_refund_in_another_currency_escalates():
    args = {"amount": "10.00", "currency": "EUR"}
    outcome = judge("process_refund", args)
    assert outcome.tier is Tier.ESCALATE
    assert ids(outcome) == {"money.unknown_currency", "refund.other_currency"}


def test_refund_of_an_unknown_order_is_blocked():
    outcome = refund("10.00", keys={}, before={})
    assert outcome.tier is Tier.BLOCK
    assert "key.unresolved" in ids(outcome)


def test_refund_off_hours_is_flagged_and_needs_the_reviewers_reason():
    outcome = hours("process_refund", now=store.EVENING)
    assert outcome.tier is Tier.APPROVE
    assert ids(outcome) == {"refund.off_hours"}
    assert outcome.flags == ("off hours",)
    assert outcome.requires_reason
    assert not outcome.requires_rationale
    assert not hours("process_refund").requires_reason
    assert hours("process_refund").flags == ()


def test_the_demo_store_never_closes():
    outcome = judge("process_refund", now=SATURDAY_NIGHT)
    assert outcome.flags == ()
    assert judge("add_label", now=SATURDAY_NIGHT).tier is Tier.NOTIFY


# Nobody is there.
NOBODY = [
    {"document": store.with_hours(), "now": SATURDAY_NIGHT},
    {"unattended": True},
]


@pytest.mark.parametrize("nobody", NOBODY, ids=["warehouse closed", "unattended"])
class TestNobodyIsThere:
    def test_notify_becomes_approve(self, nobody):
        for tool, args in (("add_label", {}), ("send_email", {"to": [OWN]})):
            outcome = judge(tool, args, **nobody)
            assert outcome.tier is Tier.APPROVE
            assert "unattended.notify" in ids(outcome)

    def test_reads_stay_automatic(self, nobody):
        assert judge("look_up_order", **nobody).tier is Tier.AUTO

    def test_labels_and_addresses_go_to_the_supervisors_on_call(self, nobody):
        for tool in ("add_label", "create_return_label", "change_shipped_address"):
            outcome = judge(tool, **nobody)
            assert outcome.queue == "oncall"
            assert "unattended.on_call" in ids(outcome)
        assert judge("process_refund", **nobody).queue == "refunds"

    def test_already_the_first_refund_above_100_escalates(self, nobody):
        assert refund("100.00", **nobody).tier is Tier.APPROVE
        outcome = refund("100.01", **nobody)
        assert outcome.tier is Tier.ESCALATE
        assert "unattended.refund" in ids(outcome)


# Agents that fail or flood.
def test_more_than_three_failures_make_even_a_read_need_approval():
    assert judge("look_up_order", counts={"failures": 3}).tier is Tier.AUTO
    outcome = judge("look_up_order", counts={"failures": 4})
    assert outcome.tier is Tier.APPROVE
    assert ids(outcome) == {"agent.failing"}
    assert outcome.queue == "reads"
    assert judge("delete_customer", counts={"failures": 4}).tier is Tier.ESCALATE


@pytest.mark.parametrize("to", [TEST, OWN, OUTSIDE])
def test_more_than_20_mails_in_10_minutes_escalate_into_their_own_queue(to):
    calm = judge("send_email", {"to": [to]}, counts={"mails_10m": 20})
    assert "mail.burst" not in ids(calm)
    assert calm.queue == "mail"
    outcome = judge("send_email", {"to": [to]}, counts={"mails_10m": 21})
    assert outcome.tier is Tier.ESCALATE
    assert "mail.burst" in ids(outcome)
    assert outcome.queue == "bulk-mail"


def test_more_than_100_mails_in_an_hour_are_blocked():
    calm = judge("send_email", counts={"mails_1h": 100})
    assert calm.tier is Tier.APPROVE
    outcome = judge("send_email", counts={"mails_1h": 101})
    assert outcome.tier is Tier.BLOCK
    assert "mail.flood" in ids(outcome)


# Mail, by its recipients.
@pytest.mark.parametrize(
    ("args", "effect_class", "tier"),
    [
        ({"to": [TEST]}, "test", "auto"),
        ({"to": [OWN]}, "own", "notify"),
        ({"to": [TEST, OWN]}, "own", "notify"),
        ({"to": [TEST], "cc": [TEST], "bcc": [TEST]}, "test", "auto"),
        ({"to": [OUTSIDE]}, "external", "approve"),
        ({"to": [OWN, OUTSIDE]}, "external", "approve"),
        ({"to": [TEST], "cc": [OUTSIDE]}, "external", "approve"),
        ({"to": [OWN], "bcc": [OUTSIDE]}, "external", "approve"),
        ({"to": ["desk@Northgate-Electronics.example"]}, "external", "approve"),
        ({"to": ["desk@northgate-electronics.example."]}, "external", "approve"),
        ({"to": ["desk@northgate-electronlcs.example"]}, "external", "approve"),
        ({"to": ["desk@northgate-electronics.example.evil.example"]}, "external", ""),
        ({"to": ["desk@evil-northgate-electronics.example"]}, "external", ""),
        ({"to": ["desk@mail.northgate-electronics.example"]}, "external", ""),
        ({"to": ["d@northgatе-electronics.example"]}, "external", ""),  # noqa: RUF001
        ({"to": [f"eve%evil.example@{OWN.partition('@')[2]}"]}, "external", ""),
        ({"to": [f"evil.example!eve@{OWN.partition('@')[2]}"]}, "external", ""),
        ({"to": [TEST], "subject": "Hi\r\nBcc: eve@evil.example"}, "external", ""),
        ({"to": [OWN], "subject": "Hi\nBcc: eve@evil.example"}, "external", ""),
        ({"to": [f"eve@evil.example, {OWN}"]}, "external", ""),
        ({"to": [f"eve@evil.example\n{OWN}"]}, "external", ""),
        ({"to": [f"<eve@evil.example> {OWN}"]}, "external", ""),
        ({"to": [f"eve@evil.example@{OWN.split('@')[1]}"]}, "external", ""),
        ({"to": ["QA@northgate-electronics.example"]}, "own", "notify"),
    ],
)
def test_mail_takes_the_class_of_its_recipients(args, effect_class, tier):
    outcome = judge("send_email", args)
    assert outcome.effect_class == effect_class
    assert outcome.tier == (tier or "approve")
    external = effect_class == "external"
    assert outcome.requires_reason is external
    assert outcome.requires_rationale is external
    assert (
        outcome.risk
        == {"test": "low", "own": "medium", "external": "high"}[effect_class]
    )


# Records and parcels.
def test_address_change_after_shipment_escalates():
    outcome = judge("change_shipped_address")
    assert outcome.tier is Tier.ESCALATE
    assert ids(outcome) == {"address.after_shipment"}
    unshipped = judge(
        "change_shipped_address", before={**store.ORDER, "shipped": False}
    )
    assert unshipped.tier is Tier.ESCALATE
    assert ids(unshipped) == {"tool.floor"}


def test_customer_under_retention_is_not_deleted():
    outcome = judge("delete_customer", before={"under_retention": True})
    assert outcome.tier is Tier.BLOCK
    assert ids(outcome) == {"customer.under_retention"}


# The gate's own.
def test_unknown_tool_waits_for_a_person():
    outcome = judge("wire_money")
    assert (outcome.tier, outcome.queue) == (Tier.APPROVE, "unknown")
    assert ids(outcome) == {"tool.undeclared"}


@pytest.mark.parametrize("tool", sorted(store.ARGS))
def test_flagged_uncertainty_always_needs_a_person(tool):
    outcome = judge(tool, uncertain=0.01)
    assert outcome.tier.rank >= Tier.APPROVE.rank
    assert "agent.uncertain" in ids(outcome)
    assert outcome.flags == ("uncertain",)


@pytest.mark.parametrize(
    "tool", ["process_refund", "change_shipped_address", "delete_customer"]
)
def test_without_its_reader_a_tool_is_blocked(tool):
    outcome = judge(tool, before={})
    assert outcome.tier is Tier.BLOCK
    assert "policy.error" in ids(outcome)
    assert any("does not exist" in rule.text for rule in outcome.rules)
