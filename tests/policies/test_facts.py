"""What a proposal weighs, in which sums, and what its rules may read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.transaction import TransactionManagementError

from journal import clock
from policies import facts, locks, tools
from policies.evaluation import evaluate
from policies.facts import RevisionInputs
from policies.models import Observation, Tool
from tests.policies import builders, store, test_amounts

pytestmark = pytest.mark.django_db


@pytest.fixture
def document():
    tools.sync_tools(store.shipped())
    return store.shipped()


def inputs(proposal="p-1", tool="process_refund", amount="49.00", **changes):
    args = dict(store.ARGS[tool])
    if tool == "process_refund":
        args["amount"] = amount
        args["currency"] = changes.pop("currency", "USD")
    return RevisionInputs(
        **{
            "tool": Tool.objects.get(name=tool),
            "args": args,
            "agent": "riley",
            "unattended": False,
            "thread": "t-1",
            "uncertain": 0.0,
            "keys": store.KEYS.get(tool, {}),
            "before": {"order_total": "899.00", "order_total_currency": "USD"},
            "proposal": proposal,
            **changes,
        }
    )


def observe(document, *many, at=None):
    for revision in many:
        facts.record_observations(document, revision, at=at or clock.now())


def collect(document, revision):
    return facts.collect_facts(document, revision, now=clock.now())


def refunds(document, revision=None):
    collected = collect(document, revision or inputs("p-new"))
    return (
        collected["count"]["refunds_by_customer"],
        collected["sum"]["refunds_by_customer"],
    )


def test_a_proposal_belongs_to_the_sums_of_its_tool_and_keys(document):
    assert facts.list_measures(document, inputs()) == [
        ("refunds_by_customer", "C-1001"),
        ("refunds_by_order", "78291"),
    ]
    mail = inputs(tool="send_email")
    assert facts.list_measures(document, mail) == [
        ("mails_10m", "riley"),
        ("mails_1h", "riley"),
    ]
    assert facts.list_measures(document, inputs(keys={"order": "78291"})) == [
        ("refunds_by_order", "78291")
    ]


def test_an_agent_cannot_supply_its_key(document):
    claimed = inputs(tool="send_email", keys={"agent": "someone else"})
    assert facts.list_measures(document, claimed)[0] == ("mails_10m", "riley")


def test_the_proposal_itself_is_counted_once(document):
    assert refunds(document) == (1, 4900)
    observe(document, inputs("p-new"))
    assert refunds(document) == (1, 4900)


def test_sums_run_over_all_agents_threads_and_orders(document):
    elsewhere = inputs(
        "p-2",
        agent="robin",
        thread="t-2",
        keys={"customer": "C-1001", "order": "78201"},
    )
    observe(document, inputs("p-1"), elsewhere, inputs("p-3", keys={
        "customer": "C-1002", "order": "78291"}))  # fmt: skip
    collected = collect(document, inputs("p-new"))
    assert collected["sum"] == {"refunds_by_customer": 14700, "refunds_by_order": 14700}
    assert collected["count"]["refunds_by_customer"] == 3


def test_what_ran_before_the_window_counts_no_more(document):
    now = clock.now()
    day = timedelta(hours=24)
    ran(document, "p-1", at=now - day - timedelta(seconds=1))
    ran(document, "p-2", at=now - day + timedelta(minutes=1))
    collected = facts.collect_facts(document, inputs("p-new"), now=now)
    assert collected["sum"]["refunds_by_customer"] == 9800
    assert collected["sum"]["refunds_by_order"] == 14700


def ran(document, proposal, *, at, proposed=timedelta(minutes=1)):
    observe(document, inputs(proposal), at=at - proposed)
    facts.mark_effect_ran(proposal, at=at)


def test_what_waits_counts_however_long_it_has_waited(document):
    observe(document, inputs("p-1"), at=clock.now() - timedelta(hours=24, minutes=1))
    assert refunds(document) == (2, 9800)


def test_a_window_counts_from_the_effect_of_what_ran(document):
    at = clock.now() - timedelta(hours=23)
    ran(document, "p-1", at=at, proposed=timedelta(hours=48))
    assert refunds(document) == (2, 9800)


def test_what_asks_nobody_counts_no_longer_than_it_can_wait_to_run(document):
    now = clock.now()
    day = timedelta(hours=24)
    for name, ran_by in (("p-1", now - day), ("p-2", now)):
        facts.record_observations(
            document, inputs(name), at=now - 2 * day, ran_by=ran_by
        )
    collected = facts.collect_facts(document, inputs("p-new"), now=now)
    assert collected["sum"]["refunds_by_customer"] == 9800


def test_what_may_have_run_leaves_the_sums_only_when_it_is_denied(document):
    observe(document, inputs("p-1"))
    facts.mark_effect_ran("p-1", at=clock.now())
    facts.release_many(["p-1"])
    assert refunds(document) == (2, 9800)
    facts.mark_effect_denied("p-1")
    assert refunds(document) == (1, 4900)


def test_what_may_have_run_and_is_tried_again_is_refused_and_counts_still(document):
    at = clock.now() - timedelta(minutes=5)
    observe(document, inputs("p-1"), at=at)
    facts.mark_effect_ran("p-1", at=clock.now())
    facts.restore_observations("p-1", at=at, ran_by=clock.now() + timedelta(minutes=5))
    facts.release_many(["p-1"])
    assert refunds(document) == (2, 9800)


def test_what_was_refused_counts_no_more(document):
    observe(document, *(inputs(f"p-{n}") for n in range(4)))
    facts.release_many(["p-1"])
    assert refunds(document) == (4, 19600)
    facts.release_many(["p-2", "p-3"])
    assert refunds(document) == (2, 9800)
    assert Observation.objects.count() == 12  # two measures, and the agent's budget


def test_what_is_tried_again_counts_as_it_last_was(document):
    first, second = clock.now() - timedelta(minutes=1), clock.now()
    observe(document, inputs("p-1"), at=first)
    moved = inputs("p-1", keys={"customer": "C-1002", "order": "78201"})
    observe(document, moved, at=second)
    facts.record_failure(agent="riley", proposal="p-1", at=second)
    facts.release_many(["p-1"])
    facts.restore_observations("p-1", at=second, ran_by=second + timedelta(minutes=15))
    assert refunds(document, inputs("p-9", keys=moved.keys)) == (2, 9800)
    assert refunds(document) == (1, 4900)


def test_a_revision_replaces_its_own_weight(document):
    observe(document, inputs("p-1", amount="49.00"))
    observe(document, inputs("p-1", amount="10.00"))
    assert refunds(document) == (2, 5900)


def test_a_revision_leaves_the_keys_it_no_longer_has(document):
    observe(document, inputs("p-1"))
    moved = inputs("p-1", keys={"customer": "C-1002", "order": "78201"})
    observe(document, moved)
    assert refunds(document) == (1, 4900)
    assert refunds(document, inputs("p-9", keys=moved.keys)) == (2, 9800)
    observe(document, inputs("p-1"))
    assert refunds(document) == (2, 9800)


def test_currencies_are_never_added_up(document):
    observe(document, inputs("p-1", currency="EUR"))
    collected = collect(document, inputs("p-new"))
    assert collected["sum"]["refunds_by_customer"] == 4900
    assert collected["count"]["refunds_by_customer"] == 2
    assert collected["other_currencies"]["refunds_by_customer"] == ["EUR"]


def paid(proposal="p", **args):
    return RevisionInputs(
        Tool.objects.get(), args, "a", False, "t", 0.0, {}, {}, proposal
    )


@pytest.fixture
def two():
    """A policy whose tool moves an amount and a fee."""
    document = test_amounts.two()
    tools.sync_tools(document)
    return document


def test_every_amount_of_a_tool_must_be_in_the_policys_currency(two):
    for currency, tier in (("USD", "auto"), ("EUR", "escalate")):
        collected = collect(two, paid(**test_amounts.fee("1.00", currency)))
        assert collected["args"]["fee"] == 100
        assert evaluate(two, two.tools["pay"], collected).tier == tier


def test_all_amounts_of_a_tool_count_together(two):
    observe(two, paid("p-1", **test_amounts.fee("9000.00")))
    collected = collect(two, paid("p-2", **test_amounts.fee("1.00")))
    assert collected["money"] == {"amount_minor": 90000, "currency": "USD"}
    assert collected["sum"] == {"paid": 989900 + 90000}


def test_one_amount_is_summed_alone_where_the_policy_says_so():
    measures = builders.data()["measures"]
    measures["paid"]["alone"] = True
    document = test_amounts.two(measures=measures)
    tools.sync_tools(document)
    observe(document, paid("p-1", **test_amounts.fee("9000.00")))
    collected = collect(document, paid("p-2", **test_amounts.fee("1.00")))
    assert collected["sum"] == {"paid": 2 * 89900}


def test_what_is_in_several_currencies_counts_with_its_part_and_escalates(two):
    """It, and whatever follows in its window."""
    mixed = paid("p-1", **test_amounts.fee("1.00", "EUR"))
    collected = collect(two, mixed)
    assert collected["money"] == {"amount_minor": 89900, "currency": ""}
    (rule,) = [
        r
        for r in evaluate(two, two.tools["pay"], collected).rules
        if r.id == "money.unknown_currency"
    ]
    assert "several currencies" in rule.text
    observe(two, mixed)
    later = collect(two, paid("p-2", **test_amounts.PAYMENT))
    assert later["sum"] == {"paid": 2 * 89900}
    assert evaluate(two, two.tools["pay"], later).tier == "escalate"


SPENT = {"tool": "pay", "key": "agent", "window": "1h", "amount": "items[*].price"}


def ordered(proposal, *prices, total=None, **args):
    items = [{"price": one, "currency": "USD"} for one in prices]
    before = {"order_total": total, "order_total_currency": "USD"} if total else {}
    one = paid(proposal, items=items, **args)
    return replace(one, before=before)


def test_money_in_a_list_counts_for_rules_and_sums():
    document = test_amounts.order(test_amounts.PRICE, measures={"spent": SPENT})
    tools.sync_tools(document)
    observe(document, ordered("p-1", "10.00", "20.00"))
    collected = collect(document, ordered("p-2", "1.00", "2.00"))
    assert collected["money"] == {"amount_minor": 300, "currency": "USD"}
    assert collected["sum"] == {"spent": 3300}


def test_money_that_only_the_reader_knows_counts_for_rules_and_sums():
    known = {"fact": "order_total"}
    spent = {**SPENT, "amount": "before.order_total"}
    document = test_amounts.order(
        known, measures={"spent": spent}, **test_amounts.KNOWN
    )
    tools.sync_tools(document)
    observe(document, ordered("p-1", total="899.00"))
    collected = collect(document, ordered("p-2", total="1.00"))
    assert collected["money"] == {"amount_minor": 100, "currency": "USD"}
    assert collected["sum"] == {"spent": 90000}
    assert evaluate(document, document.tools["pay"], collected).tier == "auto"
    again = facts.recount_sums(
        document, ordered("p-2", total="1.00"), collected, now=clock.now()
    )
    assert again["sum"] == {"spent": 90000}


def test_money_that_the_reader_should_know_and_does_not_say_blocks():
    document = test_amounts.order({"fact": "order_total"}, **test_amounts.KNOWN)
    tools.sync_tools(document)
    collected = collect(document, ordered("p-1"))
    judged = evaluate(document, document.tools["pay"], collected)
    assert judged.tier == "block"
    assert judged.rules[0].id == "amount.unresolved"
    assert "order_total" in judged.rules[0].text


def test_a_count_without_amounts_knows_no_currency(document):
    mails = [inputs(f"p-{n}", tool="send_email") for n in range(3)]
    observe(document, *mails)
    collected = collect(document, inputs("p-new", tool="send_email"))
    assert collected["count"] == {"mails_10m": 4, "mails_1h": 4, "failures": 0}
    assert collected["sum"] == {}
    assert collected["other_currencies"] == {}


def test_failures_count_for_every_tool_of_the_agent(document):
    now = clock.now()
    for n in range(4):
        facts.record_failure(agent="riley", proposal=f"p-{n}", at=now)
    facts.record_failure(agent="riley", proposal="p-0", at=now)
    facts.record_failure(agent="robin", proposal="p-8", at=now)
    late = now - timedelta(hours=2)
    facts.record_failure(agent="riley", proposal="p-9", at=late)
    look_up = inputs("p-new", tool="look_up_order")
    assert collect(document, look_up)["count"] == {"failures": 4}


def test_a_failure_stays_when_its_proposal_is_released(document):
    observe(document, inputs("p-1"))
    facts.record_failure(agent="riley", proposal="p-1", at=clock.now())
    facts.release_many(["p-1"])
    observe(document, inputs("p-1", amount="1.00"))
    assert collect(document, inputs("p-new"))["count"]["failures"] == 1


def test_facts_are_plain_data_with_money_in_minor_units(document):
    collected = collect(
        document,
        inputs(
            uncertain=True,
            unattended=True,
            before={
                "order_total": "899.00",
                "order_total_currency": "USD",
                "order_refunded": 12.5,
                "order_refunded_currency": "USD",
                "delivered": True,
                "orders": 3,
            },
        ),
    )
    assert json.loads(json.dumps(collected)) == collected
    assert collected["tool"] == "process_refund"
    assert collected["args"]["amount"] == 4900
    assert collected["money"] == {"amount_minor": 4900, "currency": "USD"}
    assert collected["agent"] == {"name": "riley", "unattended": True}
    assert collected["uncertain"] == 1.0
    assert collected["before"] == {
        "order_total": 89900,
        "order_total_currency": "USD",
        "order_refunded_currency": "USD",
        "delivered": True,
        "orders": 3,
    }
    assert collected["clock"]["store_open"] is True
    assert set(collected["clock"]) == {
        "hour", "minute", "weekday", "store_open", "warehouse_open",
    }  # fmt: skip


@pytest.mark.parametrize("tool", sorted(store.ARGS))
def test_collected_facts_are_all_that_the_shipped_rules_need(document, tool):
    before = {
        name: value
        for name, value in store.BEFORE.get(tool, {}).items()
        if name not in ("order_total", "order_refunded")
    }
    if tool == "process_refund":
        before |= {"order_total": "899.00", "order_refunded": "0.00"}
    collected = collect(document, inputs(tool=tool, before=before))
    judged = evaluate(document, document.tools[tool], json.loads(json.dumps(collected)))
    assert judged == store.judge(tool, {"amount": "49.00"} if "refund" in tool else {})


def test_collecting_takes_one_query(document, django_assert_num_queries):
    for revision in (inputs(), inputs(tool="look_up_order"), inputs(tool="send_email")):
        tools.load_definition(revision.tool)
        now = clock.now()
        with django_assert_num_queries(1):
            facts.collect_facts(document, revision, now=now)
        with django_assert_num_queries(1):
            facts.record_observations(document, revision, at=now)


@pytest.mark.django_db(transaction=True)
def test_every_step_needs_its_callers_transaction():
    tools_without_rows = RevisionInputs(
        Tool(name="x"), {}, "riley", False, "t", 0.0, {}, {}, "p-1"
    )
    document, now = store.shipped(), clock.now()
    for step in (
        lambda: locks.lock_measures([("m", "k")]),
        lambda: facts.collect_facts(document, tools_without_rows, now=now),
        lambda: facts.record_observations(document, tools_without_rows, at=now),
        lambda: facts.release_many(["p-1"]),
        lambda: facts.mark_effect_ran("p-1", at=now),
        lambda: facts.mark_effect_denied("p-1"),
        lambda: facts.record_failure(agent="riley", proposal="p-1", at=now),
    ):
        with pytest.raises(TransactionManagementError):
            step()
