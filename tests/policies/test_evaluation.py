"""Every rule that holds applies, the strictest wins, and nothing lowers the floor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies import evaluation, money
from policies.choices import Risk, Role, Tier
from policies.evaluation import AppliedRule, Evaluation, RequiredStep
from tests.policies import builders, store, test_amounts
from tests.policies.builders import SAFE, judge, rule, ruled
from tests.policies.store import ids

HEAVY = {"reversible": False, "blast_radius": 4}


def test_without_rules_the_floor_is_the_tier():
    assert judge(builders.document()).tier is Tier.AUTO
    assert judge(builders.document()).rules == ()
    reported = "always reported to supervisors."
    asked = "approval is always required."
    for risk, tier, text in (
        ("medium", "notify", reported),
        ("high", "approve", asked),
    ):
        outcome = judge(builders.document(risk=risk))
        assert outcome.tier == tier
        assert outcome.rules == (AppliedRule("tool.floor", f"Pay: {text}", tier),)


def test_every_rule_that_holds_applies_and_the_strictest_wins():
    document = ruled(
        rule("b.low", tier="notify", flag="seen"),
        rule("c.high", tier="escalate", queue="other"),
        rule("a.mid", tier="approve", reason=True, timeout="5m"),
        rule("d.not", when="args.amount > 9999", block=True),
    )
    outcome = judge(document)
    assert outcome.tier is Tier.ESCALATE
    assert [r.id for r in outcome.rules] == ["c.high", "a.mid", "b.low"]
    assert [r.effect for r in outcome.rules] == [
        "escalate, queue other",
        "approve, shorter time-out, reason",
        "notify, flag seen",
    ]
    assert outcome.queue == "other"
    assert outcome.requires_reason
    assert outcome.timeout == 300
    assert outcome.flags == ("seen",)


def test_the_queue_is_the_strictest_rules():
    weak = rule("a.weak", tier="approve", queue="money")
    strong = rule("b.strong", tier="escalate", queue="other")
    assert judge(ruled(weak, strong)).queue == "other"
    assert judge(ruled(rule(flag="x"))).queue == "money"


def test_a_rule_may_shorten_a_time_out_and_never_extend_it():
    assert judge(ruled(rule(timeout="2h"))).timeout == 3600
    assert judge(ruled(rule(timeout="2m"))).timeout == 120


def test_a_rule_may_add_a_step_and_the_largest_of_a_role_counts():
    document = ruled(
        rule("a.one", step={"role": "supervisor", "required": 1}),
        rule("b.two", step={"role": "supervisor", "required": 2}),
        rule("c.tier", tier="approve"),
    )
    assert judge(document).steps == (
        RequiredStep(Role.REVIEWER, 1),
        RequiredStep(Role.SUPERVISOR, 2),
    )


def test_what_needs_nobody_has_no_steps():
    step = {"role": "supervisor", "required": 1}
    assert judge(ruled(rule(step=step))).steps == ()
    assert judge(ruled(rule(block=True, step=step))).steps == ()


def test_a_tool_may_ask_for_more_people():
    steps = {"approve": [{"role": "reviewer", "required": 2}]}
    document = builders.document(risk="high", steps=steps)
    assert judge(document).steps == (RequiredStep(Role.REVIEWER, 2),)


def test_a_raised_risk_brings_its_own_floor():
    outcome = judge(ruled(rule(risk="critical")))
    assert (outcome.risk, outcome.tier) == ("critical", "escalate")
    assert outcome.step_up
    assert judge(ruled(rule(risk="low"), risk="high")).risk == "high"


def test_an_unusually_large_amount_is_critical():
    figure = {"amount": "10.00", "currency": "USD"}
    document = builders.document({"critical_above": figure})
    assert judge(document).risk == "low"
    assert judge(document, args={"amount": 1001}).risk == "critical"


def test_step_up_is_for_escalate_critical_and_by_rule():
    assert not judge(builders.document(risk="high")).step_up
    assert judge(ruled(rule(tier="escalate"))).step_up
    assert judge(ruled(rule(tier="approve", step_up=True))).step_up
    assert judge(ruled(rule(tier="approve", risk="critical"))).step_up


def test_recall_is_by_risk_and_not_for_two_people_on_a_critical_effect():
    recall = {"recall": {"low": 5, "high": 10, "critical": 30}}
    assert judge(builders.document(recall, risk="low", floor="approve")).recall == 5
    assert judge(builders.document(recall, risk="high")).recall == 10
    assert judge(builders.document(recall, risk="critical")).recall == 0
    steps = {"escalate": [{"role": "supervisor", "required": 2}], "approve": [
        {"role": "supervisor", "required": 1}]}  # fmt: skip
    lone = builders.document(
        {**recall, "steps": steps}, risk="critical", floor="approve"
    )
    assert judge(lone).recall == 30


# The gate's own.
def test_a_rule_that_cannot_be_evaluated_blocks_by_name():
    document = ruled(
        rule("a.bad", when="1 / (args.amount - args.amount) > 1", tier="notify"),
        rule("b.good", tier="approve"),
    )
    outcome = judge(document)
    assert outcome.tier is Tier.BLOCK
    assert ids(outcome) == {"policy.error", "b.good"}
    assert "a.bad" in outcome.rules[0].text
    assert outcome.rules[0].blocks
    assert outcome.queue == ""


@pytest.mark.parametrize("missing", sorted(builders.facts()))
def test_a_missing_fact_never_opens_the_gate(missing):
    document = ruled(rule(when="args.amount > 5000 && sum.paid > 1", tier="approve"))
    facts = {k: v for k, v in builders.facts().items() if k != missing}
    outcome = evaluation.evaluate(document, document.tools["pay"], facts)
    needed = {"args", "money", "uncertain"}
    assert (outcome.tier is Tier.BLOCK) is (missing in needed)
    assert missing not in needed or ids(outcome) == {"policy.error"}


def test_what_goes_wrong_is_logged_without_its_text(caplog):
    document = builders.document()
    outcome = evaluation.evaluate(document, document.tools["pay"], {"args": "secret"})
    assert outcome.tier is Tier.BLOCK
    assert "secret" not in caplog.text
    assert "policy evaluation failed" in caplog.text


@pytest.mark.parametrize("keys", [{}, {"customer": ""}, {"customer": None}])
def test_an_unresolved_key_blocks(keys):
    reader = {"kind": "webhook", "url": "http://a.example/r"}
    document = builders.document(reader=reader, keys=["customer"])
    outcome = judge(document, keys=keys)
    assert outcome.tier is Tier.BLOCK
    assert ids(outcome) == {"key.unresolved"}
    assert judge(document, keys={"customer": "C"}).tier is Tier.AUTO


def test_a_currency_that_the_rules_do_not_count_in_escalates():
    outcome = judge(builders.document(), args={"currency": "EUR"})
    assert outcome.tier is Tier.ESCALATE
    assert ids(outcome) == {"money.unknown_currency"}
    mixed = judge(builders.document(), other_currencies={"paid": ["EUR"]})
    assert ids(mixed) == {"money.unknown_currency"}
    assert judge(builders.document(), other_currencies={"paid": []}).tier is Tier.AUTO


@pytest.mark.parametrize("uncertain", [0.001, 0.5, 1, 1.0, True])
def test_uncertainty_needs_at_least_approval(uncertain):
    outcome = judge(builders.document(), uncertain=uncertain)
    assert outcome.tier is Tier.APPROVE
    assert ids(outcome) == {"agent.uncertain"}
    escalated = judge(builders.document(risk="critical"), uncertain=uncertain)
    assert escalated.tier is Tier.ESCALATE


def test_self_modification_needs_at_least_approval():
    profile = {**SAFE, "self_modifying": True}
    outcome = judge(builders.document(profile=profile, floor="approve"))
    assert ids(outcome) == {"tool.self_modifying"}
    assert outcome.tier is Tier.APPROVE


@pytest.mark.parametrize(
    ("risk", "tier"),
    [
        ("low", "approve"),
        ("medium", "approve"),
        ("high", "block"),
        ("critical", "block"),
    ],
)
def test_what_nobody_can_inspect_is_not_for_a_person_to_approve(risk, tier):
    opened = builders.data()["tools"]["pay"]["schema"]
    opened["additionalProperties"] = True
    hidden = judge(builders.document(schema=opened, risk=risk), args={"x": {}})
    assert hidden.tier == tier
    assert "unreviewable" in ids(hidden)
    assert "declare" in hidden.rules[0].text
    assert "unreviewable" not in ids(judge(builders.document(schema=opened, risk=risk)))


@pytest.mark.parametrize(
    ("risk", "tier"),
    [("low", "approve"), ("high", "approve"), ("critical", "escalate")],
)
def test_a_person_reads_the_sentence_that_a_tool_does_not_declare(risk, tier):
    outcome = judge(builders.document(effect="", risk=risk))
    assert outcome.tier == tier
    assert "unreviewable" in ids(outcome)


def test_free_form_tools_escalate_what_nobody_can_inspect():
    opened = {**builders.data()["tools"]["pay"]["schema"], "additionalProperties": True}
    document = builders.document({"free_form": ["pay"]}, risk="high", schema=opened)
    assert judge(document, args={"x": {}}).tier is Tier.ESCALATE


def test_an_encoded_argument_cannot_be_inspected():
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["properties"]["note"] = {"type": "string", "contentEncoding": "base64"}
    document = builders.document(schema=schema, risk="high")
    assert judge(document).tier is Tier.APPROVE
    assert judge(document, args={"note": "cm0gLXJm"}).tier is Tier.BLOCK


# Classes.
CLASSES: list[dict[str, Any]] = [
    {"name": "ours", "when": {"argument": "to", "one_of": ["us"]}, "risk": "low",
     "profile": SAFE},
    {"name": "theirs", "risk": "high", "profile": HEAVY, "requires_reason": True},
]  # fmt: skip


def test_a_class_is_chosen_before_any_rule():
    document = ruled(
        rule(when='class == "ours" && floor == "auto"', flag="ours"),
        classes=CLASSES,
        risk="high",
        profile=HEAVY,
    )
    ours, theirs = judge(document, args={"to": "us"}), judge(document)
    assert (ours.effect_class, ours.tier, ours.flags) == ("ours", "auto", ("ours",))
    assert (theirs.effect_class, theirs.tier, theirs.flags) == (
        "theirs",
        "approve",
        (),
    )
    assert theirs.requires_reason
    assert theirs.requires_rationale
    assert ids(theirs) == {"class.theirs"}


def test_what_matches_no_class_takes_the_strictest():
    forms = [
        {**effect_class, "when": {"argument": "to", "one_of": [effect_class["name"]]}}
        for effect_class in CLASSES
    ]
    document = builders.document(classes=forms[::-1], risk="high", profile=HEAVY)
    assert judge(document, args={"to": "someone"}).effect_class == "theirs"


def test_a_tool_may_ask_for_a_reason_or_only_for_a_rationale():
    reason = judge(builders.document(requires_reason=True))
    assert (reason.requires_reason, reason.requires_rationale) == (True, True)
    rationale = judge(builders.document(requires_rationale=True))
    assert (rationale.requires_reason, rationale.requires_rationale) == (False, True)


# Snapshots.
@pytest.mark.parametrize("tool", sorted(store.ARGS))
def test_an_evaluation_survives_being_stored(tool):
    outcome = store.judge(tool, uncertain=1.0, unattended=True)
    stored = json.loads(json.dumps(outcome.as_json()))
    assert Evaluation.from_json(stored) == outcome


def test_blocked_is_an_evaluation_of_nothing():
    outcome = evaluation.build_blocked_evaluation(
        "tool.unknown", "This tool is not registered."
    )
    assert outcome.tier is Tier.BLOCK
    assert outcome.risk == "critical"
    assert outcome.steps == ()
    assert Evaluation.from_json(outcome.as_json()) == outcome


@pytest.mark.parametrize(
    "when",
    [
        "args.amount > 50000",
        '"amount" in args && args.amount > 50000',
        "money.amount_minor > 50000",
        '!("amount" in args)',
    ],
)
def test_a_rule_on_an_amount_that_means_everything_holds(when):
    """Also one that tests whether the argument is there."""
    policy = test_amounts.refunds(
        {
            "rules": [rule(when=when, tier="escalate")],
            "critical_above": {"amount": "5000.00", "currency": "USD"},
        }
    )
    whole = {"amount_minor": money.WHOLE, "currency": "USD"}
    sent = {**builders.facts(money=whole), "args": {"to": "a"}}
    sent["absent_amounts"] = {"amount": money.WHOLE}
    outcome = evaluation.evaluate(policy, policy.tools["pay"], sent)
    assert "a.rule" in ids(outcome)
    assert outcome.risk is Risk.CRITICAL
