"""Laws of the evaluation, over generated policies and proposals [I15]."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.choices import Tier
from policies.documents import parse_document
from policies.evaluation import evaluate
from tests.policies import builders, store
from tests.policies.builders import judge, rule, ruled
from tests.processor_time import costs_less

NOBODY_READS = ("rationale", "priority", "evidence", "expected_outcome", "on_behalf_of")
THENS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"tier": "notify"},
        {"tier": "approve"},
        {"tier": "escalate", "queue": "other"},
        {"queue": "money"},
        {"queue": "other"},
        {"block": True},
        {"risk": "high"},
        {"risk": "critical"},
        {"step": {"role": "supervisor", "required": 1}},
        {"step": {"role": "reviewer", "required": 2}, "reason": True},
        {"timeout": "5m", "flag": "short"},
        {"step_up": True, "flag": "sure"},
    ]
)
WHENS = st.sampled_from(
    [
        "true",
        "args.amount > 1000",
        "sum.paid > 2000 || agent.unattended",
        "uncertain > 0.5",
        "clock.hour < 8",
        "1 / (clock.hour - 12) > 0",
        'floor == "auto"',
    ]
)
RULES = st.lists(st.tuples(WHENS, THENS), max_size=6).map(
    lambda pairs: [
        rule(f"r{n}", when=when, **then) for n, (when, then) in enumerate(pairs)
    ]
)
RISKS = st.sampled_from(["low", "medium", "high", "critical"])
WORLDS = st.fixed_dictionaries(
    {
        "args": st.fixed_dictionaries(
            {
                "amount": st.integers(0, 3000),
                "currency": st.sampled_from(["USD", "EUR"]),
            }
        ),
        "agent": st.fixed_dictionaries({"unattended": st.booleans()}),
        "uncertain": st.sampled_from([0.0, 0.2, 1.0]),
        "clock": st.fixed_dictionaries({"hour": st.integers(0, 23)}),
    }
)


@given(RULES, RISKS, WORLDS, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_rules_is_for_reading_only(rules, risk, world, random):
    shuffled = random.sample(rules, len(rules))
    assert judge(ruled(*rules, risk=risk), **world) == judge(
        ruled(*shuffled, risk=risk), **world
    )


@given(RULES, RISKS, WORLDS)
@settings(max_examples=60)
def test_one_rule_more_never_asks_for_less(rules, risk, world):
    less, more = ruled(*rules[:-1], risk=risk), ruled(*rules, risk=risk)
    before, after = judge(less, **world), judge(more, **world)
    assert after.tier.rank >= before.tier.rank
    assert after.risk.rank >= before.risk.rank
    assert after.timeout <= before.timeout
    assert after.requires_reason >= before.requires_reason
    assert after.step_up >= before.step_up
    if after.steps and before.steps:
        assert sum(s.required for s in after.steps) >= sum(
            s.required for s in before.steps
        )


@given(RULES, RISKS, WORLDS)
@settings(max_examples=60)
def test_the_result_is_never_below_the_floor_or_any_rule_that_held(rules, risk, world):
    document = ruled(*rules, risk=risk)
    outcome = judge(document, **world)
    assert outcome.tier.rank >= document.tools["pay"].base.rank
    held = {r.id for r in outcome.rules}
    demands = [r.then.demands.rank for r in document.rules if r.id in held]
    assert outcome.tier.rank >= max(demands, default=0)


def claims():
    text = st.text(max_size=40)
    return st.dictionaries(st.sampled_from(NOBODY_READS), text | st.booleans())


@given(
    st.sampled_from(sorted(store.ARGS)),
    claims(),
    st.floats(0, 1),
    st.integers(0, 2).map(lambda n: [4900] * n),
    st.sampled_from([store.NOON, store.EVENING, store.SATURDAY_NIGHT]),
)
@settings(max_examples=150)
def test_nothing_an_agent_says_of_itself_lowers_the_tier(
    tool, said, uncertain, earlier, now
):
    """[I15] Beyond the arguments, what it says either raises or is not read."""
    document = store.with_hours()
    world = {"earlier": earlier, "now": now}
    facts = store.facts(document, tool, **world)
    silent = evaluate(document, document.tools[tool], facts)
    spoken = evaluate(
        document,
        document.tools[tool],
        {**facts, **said, "uncertain": uncertain},
    )
    assert spoken.tier.rank >= silent.tier.rank
    assert spoken.risk.rank >= silent.risk.rank
    assert not uncertain or spoken.tier.rank >= Tier.APPROVE.rank


@given(
    st.text(max_size=60) | st.emails(),
    st.sampled_from(["to", "cc", "bcc"]),
)
@settings(max_examples=150)
def test_one_recipient_more_never_makes_a_mail_more_internal(address, field):
    ours = {"to": ["desk@northgate-electronics.example"]}
    args = {**ours, field: [*ours.get(field, []), address]}
    outcome = store.judge("send_email", args)
    assert outcome.tier.rank >= store.judge("send_email", ours).tier.rank
    if not address.endswith("@northgate-electronics.example"):
        assert outcome.effect_class == "external"


def test_the_store_policy_is_judged_in_well_under_a_millisecond():
    document = parse_document(store.data(), variables=store.VARIABLES)
    tool = document.tools["process_refund"]
    facts = store.facts(document, "process_refund")
    evaluate(document, tool, facts)  # compiles the conditions once

    def evaluate_often() -> None:
        for _ in range(200):
            evaluate(document, tool, facts)

    assert costs_less(evaluate_often, seconds=200 * 0.001)


def test_a_compiled_policy_is_not_changed_by_what_it_judges():
    document = builders.document()
    before = document.model_dump(mode="json")
    judge(document, args={"amount": 5}, uncertain=1.0)
    assert document.model_dump(mode="json") == before
