"""What a policy document refuses, by field and rule."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from policies import active
from policies.choices import Tier
from policies.documents import InvalidPolicy, ToolDefinition, parse_document
from policies.documents.definitions import Profile
from tests.policies import builders, store
from tests.policies.builders import SAFE, rule
from tests.processor_time import costs_less


def refusal(source, **variables):
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(source, variables=variables)
    assert refused.value.code == "policy"
    assert refused.value.status == 422
    return {error["path"]: error["message"] for error in refused.value.errors}


def tool_refusal(changes=None, **tool):
    return refusal(builders.data(changes, **tool))


def test_the_small_policy_is_a_policy():
    assert list(builders.document().tools) == ["pay"]


def test_what_is_stored_reads_back_as_the_same_policy():
    document = store.shipped()
    stored = document.model_dump(mode="json", by_alias=True)
    assert parse_document(stored) == document
    assert parse_document(stored).model_dump(mode="json", by_alias=True) == stored


# Text.
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "expected"),
        ("a: 1\na: 2", "twice"),
        ("a: &x 1\nb: *x", "anchors"),
        ("a: !!python/object:os.system 1", "could not determine a constructor"),
        ("[1, 2]: 3", "unhashable"),
        ("a: 2026-13-45", "not YAML"),
        ("[" * 5000, "at most 40 levels"),
        ("a: [" + "1," * 40_000 + "]", "30,000 parts"),
        ("a: " + "9" * 5000, "not YAML"),
        ("x" * 600_000, "at most"),
    ],
)
def test_text_that_is_not_strict_yaml_is_refused(text, says):
    (message,) = refusal(text).values()
    assert says in message


def test_an_error_in_the_text_names_its_line():
    assert refusal("name: a\nname: b") == {"line 1, column 1": "this key is used twice"}


@pytest.mark.parametrize("source", ["", "text", "- a", "1", {}, []])
def test_what_is_no_document_is_refused(source):
    assert refusal(source)


def test_variables_are_filled_in_and_must_be_known():
    data = builders.data(executor={"kind": "webhook", "url": "${BASE}/effects/pay"})
    document = parse_document(data, variables={"BASE": "http://store.example"})
    executor = document.tools["pay"].executor.model_dump()
    assert executor["url"] == "http://store.example/effects/pay"
    message = "the variable BASE is not set: add --set BASE=VALUE"
    assert refusal(data) == {"tools.pay.executor.url": message}


def test_what_has_no_canonical_form_is_refused():
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["properties"]["note"] = {"type": "string", "maxLength": 2**60}
    (message,) = tool_refusal(schema=schema).values()
    assert "cannot be stored" in message
    assert refusal(builders.data({"queues": {"money": "a\0b"}}))


def test_a_variable_cannot_bring_structure_along():
    data = builders.data({"name": "${NAME}"})
    assert "name" in refusal(data, NAME="a\ncurrency: EUR")


# Fields.
def test_unknown_fields_are_refused_where_they_stand():
    assert "tools.pay.flor" in tool_refusal(flor="auto")
    bad = {**rule(tier="approve"), "whenn": "true"}
    assert "rules.a.rule.whenn" in refusal(builders.data({"rules": [bad]}))


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"risk": "huge"}, "risk"),
        ({"floor": "block"}, "floor"),
        ({"queue": "nowhere"}, "queue"),
        ({"timeout": "30"}, "timeout"),
        ({"timeout": "59s"}, "timeout"),
        ({"timeout": "91d"}, "timeout"),
        ({"timeout": "2h", "timeout_max": "1h"}, "timeout_max"),
        ({"timeout_max": "91d"}, "timeout_max"),
        ({"window": "15"}, "window"),
        ({"window": "59s"}, "window"),
        ({"window": "25h"}, "window"),
        ({"audience": "two words"}, "audience"),
        ({"audience": ""}, "audience"),
        ({"profile": {**SAFE, "blast_radius": 6}}, "profile.blast_radius"),
        ({"profile": {**SAFE, "reversible": "yes"}}, "profile.reversible"),
        ({"profile": {"reversible": True}}, "profile.blast_radius"),
        ({"money": [{"amount": "sum", "currency": "currency"}]}, "money"),
        ({"labels": {"nothing": "x"}}, "labels"),
        ({"sensitive": ["nothing"]}, "sensitive"),
        ({"redact": ["nothing"]}, "redact"),
        ({"effect": "Pay {nothing}"}, "effect"),
        ({"effect": "Pay {note}"}, "effect"),
        ({"effect": "Pay {amount"}, "effect"),
        ({"schema": {"type": "objekt"}}, "schema"),
        ({"keys": ["customer"]}, "keys"),
        ({"facts": ["total"]}, "facts"),
        ({"preconditions": ["version"]}, "preconditions"),
        (
            {"execution_class": "opaque", "look_up": {"url": "http://a.example"}},
            "look_up",
        ),
        ({"retry": {"attempts": 11}}, "retry.attempts"),
        ({"retry": {"base_seconds": 0}}, "retry.base_seconds"),
        ({"look_up": {}}, "look_up"),
        ({"executor": {"kind": "shell"}}, "executor"),
        ({"reader": {"kind": "webhook", "url": "file:///x"}}, "reader.url"),
        ({"reader": {"kind": "callable", "path": "os; rm"}}, "reader.path"),
        ({"classes": []}, "classes"),
        ({"steps": {"block": []}}, "steps.block"),
    ],
)  # fmt: skip
def test_a_tool_that_cannot_be_is_refused_at_its_field(part, path):
    assert f"tools.pay.{path}" in tool_refusal(**part)


def test_a_queryable_webhook_needs_a_look_up():
    hook = {"kind": "webhook", "url": "http://a.example/x"}
    refusals = tool_refusal(execution_class="queryable", executor=hook)
    assert "tools.pay.look_up" in refusals


def test_money_is_never_a_number():
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["properties"]["amount"] = {"type": "number"}
    assert "tools.pay.money" in tool_refusal(schema=schema)


# The profile.
@pytest.mark.parametrize(
    ("profile", "least"),
    [
        ({}, "auto"),
        ({"blast_radius": 2}, "auto"),
        ({"blast_radius": 3}, "notify"),
        ({"blast_radius": 4}, "approve"),
        ({"blast_radius": 5}, "approve"),
        ({"reversible": False}, "approve"),
        ({"novel": True}, "approve"),
        ({"regulated": True}, "approve"),
        ({"self_modifying": True}, "approve"),
        ({"monetary": True, "external": True}, "auto"),
    ],
)
def test_no_floor_is_below_what_its_profile_demands(profile, least):
    profile = {**SAFE, **profile}
    if not profile["reversible"]:
        del profile["reversible_because"]
    assert Profile.model_validate(profile).least == least
    tiers = [tier for tier in Tier if tier is not Tier.BLOCK]
    for tier in tiers:
        if tier.rank < Tier(least).rank:
            assert "tools.pay.floor" in tool_refusal(profile=profile, floor=tier.value)
        else:
            builders.document(profile=profile, floor=tier.value)


def test_the_default_floor_of_a_risk_is_not_below_the_profile_either():
    assert "tools.pay.floor" in tool_refusal(risk="medium", profile={
        "reversible": False, "blast_radius": 1})  # fmt: skip


def test_classes_are_held_to_their_own_profile():
    lax = {"name": "lax", "risk": "low", "profile": {**SAFE, "blast_radius": 4}}
    assert "tools.pay.classes.lax.floor" in tool_refusal(classes=[lax])
    twice = {"name": "a", "risk": "low", "profile": SAFE}
    assert "tools.pay.classes.a" in tool_refusal(classes=[twice, twice])


def test_only_the_strictest_class_does_without_a_form():
    form = {"argument": "to", "one_of": ["x"]}
    low = {"name": "low", "risk": "low", "profile": SAFE}
    high = {"name": "high", "risk": "high", "profile": SAFE}
    builders.document(classes=[{**low, "when": form}, high])
    refusals = tool_refusal(classes=[low, {**high, "when": form}])
    assert "tools.pay.classes.low.when" in refusals
    astray = {**low, "when": {"argument": "nothing", "one_of": ["x"]}}
    assert "tools.pay.classes.low.when" in tool_refusal(classes=[astray, high])


# People.
@pytest.mark.parametrize(
    ("tier", "steps"),
    [
        ("approve", []),
        ("escalate", [{"role": "supervisor", "required": 1}]),
        ("escalate", [{"role": "reviewer", "required": 2}]),
    ],
)
def test_fewer_people_than_a_tier_needs_are_refused(tier, steps):
    usual = builders.DOCUMENT["steps"]
    assert f"steps.{tier}" in tool_refusal({"steps": {**usual, tier: steps}})
    assert f"tools.pay.steps.{tier}" in tool_refusal(steps={tier: steps})


def test_a_reviewer_and_a_supervisor_are_enough_to_escalate():
    steps = [{"role": role, "required": 1} for role in ("reviewer", "supervisor")]
    builders.document(steps={"escalate": steps})


def test_both_tiers_have_steps_and_only_deciding_roles():
    assert "steps.escalate" in tool_refusal(
        {"steps": {"approve": [{"role": "reviewer", "required": 1}]}}
    )
    assert tool_refusal(steps={"approve": [{"role": "auditor", "required": 1}]})
    assert tool_refusal(steps={"approve": [{"role": "reviewer", "required": 0}]})


# Batches.
def test_only_reversible_money_with_ceilings_is_batchable():
    figure = {"amount": "10.00", "currency": "USD"}
    batch = {"per_item": figure, "total": figure, "varying": ["amount"]}
    undo = {"kind": "partly", "undo": "Cancel it."}
    builders.document(batchable=batch, reversal=undo)
    for part in (
        {"batchable": {"varying": ["amount"]}, "reversal": undo},
        {"batchable": {**batch, "varying": []}, "reversal": undo},
        {"batchable": {**batch, "varying": ["nothing"]}, "reversal": undo},
        {"batchable": {**batch, "varying": ["currency"]}, "reversal": undo},
        {"batchable": batch},
        {"batchable": batch, "reversal": {"kind": "irreversible"}},
        {"batchable": batch, "reversal": undo, "risk": "critical"},
        {"batchable": batch, "reversal": undo, "floor": "escalate"},
    ):
        refused = tool_refusal(**part)
        assert any(path.startswith("tools.pay.batchable") for path in refused)


# Measures and the rest.
@pytest.mark.parametrize(
    ("measure", "path"),
    [
        ({"tool": "none", "key": "agent", "window": "1h"}, "tool"),
        ({"tool": "pay", "key": "customer", "window": "1h"}, "key"),
        ({"tool": "pay", "key": "agent", "window": "1h", "amount": "note"}, "amount"),
        ({"tool": "pay", "key": "agent"}, "window"),
    ],
)
def test_a_measure_fits_its_tool(measure, path):
    assert f"measures.m.{path}" in tool_refusal({"measures": {"m": measure}})


def test_a_measure_has_one_source():
    both = {"tool": "pay", "event": "failure", "key": "agent", "window": "1h"}
    for measure in (both, {"key": "agent", "window": "1h"}):
        assert "measures.m" in tool_refusal({"measures": {"m": measure}})
    by_thread = {"event": "failure", "key": "thread", "window": "1h"}
    assert "measures.m" in tool_refusal({"measures": {"m": by_thread}})


def test_the_figure_of_critical_is_in_the_policys_currency():
    figure = {"amount": "10.00", "currency": "EUR"}
    assert "critical_above.currency" in tool_refusal({"critical_above": figure})
    assert tool_refusal({"critical_above": {"amount": 10, "currency": "USD"}})
    assert "free_form" in tool_refusal({"free_form": ["nothing"]})


def test_time_outs_have_the_usual_values():
    tool = builders.document().tools["pay"]
    assert tool.timeout == timedelta(minutes=60)
    assert tool.longest == timedelta(hours=72)
    assert builders.document(timeout="80h").tools["pay"].longest == timedelta(hours=80)


@pytest.mark.parametrize(
    ("parts", "destination"),
    [
        ({}, "tool:pay"),
        ({"audience": "https://pay.example"}, "https://pay.example"),
        ({"executor": {"kind": "callable", "path": "a.b"}}, "tool:pay"),
        (
            {"executor": {"kind": "webhook", "url": "https://u:p@A.example:8/x?y"}},
            "https://a.example:8",
        ),
        (
            {
                "executor": {"kind": "webhook", "url": "https://a.example"},
                "audience": "pay",
            },
            "pay",
        ),
    ],
)
def test_whom_a_grant_is_for(parts, destination):
    assert builders.document(**parts).tools["pay"].destination == destination


def test_the_execution_window_is_apart_from_the_time_out():
    assert builders.document(timeout="90d").tools["pay"].window == timedelta(minutes=15)
    tool = builders.document(timeout="60s", window="24h").tools["pay"]
    assert (tool.timeout, tool.window) == (timedelta(minutes=1), timedelta(hours=24))


def test_a_standing_grant_must_cover_something():
    medium = {"risk": "medium", "profile": SAFE, "standing_grant": {}}
    terms = builders.document(None, **medium).tools["pay"].standing_grant
    assert terms is not None
    assert (terms.role, terms.minutes, terms.uses) == ("supervisor", 15, 40)
    assert "tools.pay.standing_grant" in tool_refusal(**medium, floor="approve")


@pytest.mark.parametrize(
    "terms", [{"minutes": 61}, {"minutes": 0}, {"uses": 201}, {"role": "auditor"}]
)
def test_a_standing_grant_has_limits(terms):
    changes = {"floor": "notify", "profile": SAFE, "standing_grant": terms}
    refusals = tool_refusal(risk="medium", **changes)
    assert all(path.startswith("tools.pay.standing_grant") for path in refusals)


def test_a_stored_tool_keeps_its_digest():
    """A tool is found by the digest of its definition. A release that adds a field
    leaves it out of what it stores for a tool that does not use it: otherwise every
    stored tool becomes unknown."""
    first = {**builders.TOOL, "profile": {"reversible": True, "blast_radius": 1}}
    tool = ToolDefinition.model_validate({**first, "name": "pay"})
    assert (
        active.compute_digest(active.to_plain_data(tool))
        == "sha256:dd10804824db0323b1e48ab2cc7e21ce2854e9374af59decba8a4c18b25cd4ba"
    )


def test_what_is_stored_is_read_back():
    used = builders.document(window="5m")
    assert active.to_plain_data(used.tools["pay"])["window"] == "300s"
    assert parse_document(active.to_plain_data(used)) == used


def test_tool_names_are_their_keys():
    assert builders.document().tools["pay"].name == "pay"
    assert "tools.a b" in tool_refusal({"tools": {"a b": builders.TOOL}})


# What a view shows, and against what.
def test_a_tool_says_which_argument_plays_which_part():
    tool = builders.document(
        presenter="money", shown={"payee": "note"}, limits=[LIMIT]
    ).tools["pay"]
    assert tool.roles == {"payee": "note"}


def test_without_a_word_the_usual_names_count():
    assert builders.document(presenter="money").tools["pay"].roles == {"payee": "to"}
    assert builders.document(presenter="record").tools["pay"].roles == {}


@pytest.mark.parametrize(
    ("presenter", "shown", "says"),
    [
        (
            "money",
            {"command": "note"},
            "command is not a part of the view money; write account, fees or payee",
        ),
        ("record", {"payee": "note"}, "payee is not a part of the view record"),
        (
            "money",
            {"payee": "who"},
            "who is not an argument of this tool; write amount, currency, note or to",
        ),
    ],
)
def test_an_unknown_part_or_argument_of_a_view_is_refused(presenter, shown, says):
    (message,) = tool_refusal(presenter=presenter, shown=shown).values()
    assert message == says


LIMIT = {"amount": "500.00", "currency": "USD"}


def test_a_limit_is_money_of_a_sum_that_the_tool_has():
    sums = [LIMIT, LIMIT | {"measure": "paid"}]
    builders.document(limits=sums, presenter="money")
    unknown = [LIMIT | {"measure": "failures"}]
    assert tool_refusal(limits=unknown, presenter="money") == {
        "tools.pay.limits": "failures is not a sum of this tool: name one that is"
    }
    assert tool_refusal(limits=[LIMIT | {"amount": "5.001"}])


def test_a_dry_run_is_called_as_a_reader_is():
    path = {"kind": "callable", "path": "tests.worlds.read"}
    assert builders.document(dry_run=path).tools["pay"].dry_run is not None
    assert tool_refusal(dry_run={"kind": "agent"})


# What undoes an effect, as a proposal of its own.
BACK = {
    "title": "Take back",
    "schema": {
        "type": "object",
        "required": ["payment", "amount"],
        "properties": {
            "payment": {"type": "string", "maxLength": 8},
            "amount": {"type": "string"},
            "why": {"enum": ["wrong", "twice"]},
        },
    },
    "effect": "Take back {payment}",
}
UNDO = {"payment": "$result.id", "amount": "$args.amount", "why": "wrong"}


def undoing(**args):
    tools = {"pay": builders.TOOL, "take_back": {**builders.TOOL, "money": [], **BACK}}
    pay = {**builders.TOOL, "compensation": {"tool": "take_back", "args": args}}
    return {"tools": {**tools, "pay": pay}}


def test_a_compensation_says_where_its_arguments_come_from():
    compensation = builders.document(undoing(**UNDO)).tools["pay"].compensation
    assert compensation is not None
    assert compensation.sources == {
        "payment": ("result", "id"),
        "amount": ("args", "amount"),
    }


@pytest.mark.parametrize(
    ("args", "path", "says"),
    [
        ({**UNDO, "amount": "$args.amout"}, ".args.amount", "amout is not an argument"),
        ({**UNDO, "amount": "$args.note"}, ".args.amount", "note may be absent"),
        ({**UNDO, "amount": "$arg.amount"}, ".args.amount", "write $args.name"),
        ({**UNDO, "whom": "a"}, ".args.whom", "whom is not an argument of take_back"),
        ({**UNDO, "why": "never"}, ".args.why", "not one of"),
        ({"payment": "$result.id"}, ".args", "take_back requires amount"),
    ],
)
def test_a_compensation_that_could_never_be_proposed_is_refused(args, path, says):
    refusals = tool_refusal(undoing(**args))
    assert says in refusals[f"tools.pay.compensation{path}"]


def test_a_compensation_names_a_tool_of_the_policy():
    pay = {**builders.TOOL, "compensation": {"tool": "nothing", "args": {}}}
    refusals = tool_refusal({"tools": {"pay": pay}})
    assert "tools.pay.compensation.tool" in refusals


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 2), (2, 4), (5, 32), (8, 256), (9, 300), (99, 300)]
)
def test_a_retry_waits_twice_as_long_each_time_and_never_over_the_most(
    attempts, seconds
):
    assert builders.document().tools["pay"].retry.after(attempts).seconds == seconds


LONG_KEY = "k" * 200_000
COSTLY = {
    "unknown keys": "".join(f"keynumber{n}: 1\n" for n in range(14_000)),
    "to the base 60": "a: 1" + ":1" * 130_000,
    "a float to the base 60": "a: 1" + ":1" * 1000 + ".5",
    "one long key": f"? {LONG_KEY}\n: [{'a,' * 14_000}]",
    "unset variables": "a: [" + "'${A}'," * 14_000 + "]",
    "tools": "tools:\n" + "".join(f"  t{n}: {{zz: 1}}\n" for n in range(7000)),
    "wrong rules": "rules:\n"
    + "".join(f"- {{id: r{n}, when: tru, tools: [t{n}]}}\n" for n in range(3000)),
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY)
def test_a_hostile_text_is_refused_at_little_cost(text):
    refusals: list[Any] = []

    def refuse() -> None:
        with pytest.raises(InvalidPolicy) as caught:
            parse_document(text)
        refusals[:] = caught.value.errors

    assert costs_less(refuse, seconds=2)  # a tenth of it on an idle machine
    assert len(refusals) <= 101
    assert len(json.dumps(refusals)) < 100_000


def test_further_errors_are_announced_and_not_listed():
    text = "".join(f"key{n}: 1\n" for n in range(300))
    with pytest.raises(InvalidPolicy) as caught:
        parse_document(text)
    assert len(caught.value.errors) == 101
    assert caught.value.errors[-1]["message"].startswith("there are more errors")


def test_a_number_to_the_base_60_is_a_text():
    with pytest.raises(InvalidPolicy) as caught:
        parse_document("zone: 18:30\nfloat: 1:1.5")
    assert {error["path"] for error in caught.value.errors} >= {"zone"}


def test_days_and_windows_are_in_the_years_that_the_gate_handles():
    calendar = {"zone": "UTC", "open": [], "holidays": ["0001-01-01", "2026-12-25"]}
    measure = {"event": "failure", "key": "agent", "window": "999999d"}
    changes = {"calendars": {"office": calendar}, "measures": {"failures": measure}}
    data = builders.data(changes)
    with pytest.raises(InvalidPolicy) as caught:
        parse_document(data)
    messages = {error["path"]: error["message"] for error in caught.value.errors}
    assert "from 2000 to 2100" in messages["calendars.office.holidays"]
    assert messages["measures.failures.window"] == "at most 3650 days"
