"""What the author of a policy with slips in it reads: every slip at once, each with its
line and what to write instead, and nothing of how the checks are made."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from policies import active, versions
from policies.documents import InvalidPolicy, parse_document
from policies.models import PolicyVersion
from tests import factories
from tests.conftest import Gate
from tests.policies import builders, store
from tests.policies.builders import SAFE, rule

INTERNALS = re.compile(
    r"function-|constrained-|Input should|\[key\]|tagged-union|Value error|pydantic",
    re.I,
)


def refused(source: Any) -> list[dict[str, Any]]:
    with pytest.raises(InvalidPolicy) as caught:
        parse_document(source)
    return [dict(error) for error in caught.value.errors]


def written(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, sort_keys=False)


def said_of(**tool: Any) -> dict[str, str]:
    return {e["path"]: e["message"] for e in refused(builders.data(**tool))}


def test_an_error_names_the_line_that_it_is_about() -> None:
    text = written(builders.data(presenter="moeny"))
    (error,) = refused(text)
    assert error["path"] == "tools.pay.presenter"
    assert text.splitlines()[error["line"] - 1].strip() == "presenter: moeny"
    assert error["message"] == "moeny is not a view; did you mean money?"


def test_an_error_in_a_rule_names_the_line_of_the_rule() -> None:
    text = written(
        builders.data({"rules": [rule(when="args.amout > 1", tier="block")]})
    )
    (error,) = refused(text)
    line = text.splitlines()[error["line"] - 1]
    assert "when: args.amout" in line
    assert "did you mean args.amount?" in error["message"]


def test_all_stages_are_reported_together() -> None:
    """A wrong field of one tool hides neither the typo in another nor the rule's."""
    good = builders.TOOL
    tools = {
        "pay": good,
        "broken": {**good, "risk": "huge"},
        "look": {**good, "presenter": "moeny"},
    }
    slip = rule(when="args.amout > 1", tier="approve")
    paths = {
        e["path"] for e in refused(builders.data({"tools": tools, "rules": [slip]}))
    }
    assert paths == {
        "tools.broken.risk",
        "tools.look.presenter",
        "rules.a.rule.when",
    }


def test_a_part_that_is_wrong_makes_no_second_error_elsewhere() -> None:
    """The measure and rule of a tool whose field is wrong are not called unknown."""
    slip = rule(when="args.amount > 1", tier="approve")
    data = builders.data({"rules": [slip]}, risk="huge")
    assert [e["path"] for e in refused(data)] == ["tools.pay.risk"]


@pytest.mark.parametrize(
    ("part", "path", "says"),
    [
        ({"flor": "auto"}, "flor", "this key is unknown; did you mean floor?"),
        ({"risk": "huge"}, "risk", "write low, medium, high or critical"),
        ({"executor": {"kind": "shell"}}, "executor", "callable, webhook or agent"),
        ({"executor": {}}, "executor", "write the kind"),
        ({"queue": "mony"}, "queue", "did you mean money?"),
        (
            {"classes": [{"name": "a", "risk": "low", "profile": SAFE, "when": "x"}]},
            "classes.a.when",
            "write a mapping of keys to values",
        ),
        (
            {
                "classes": [
                    {
                        "name": "a",
                        "risk": "low",
                        "profile": SAFE,
                        "when": {"one_of": []},
                    }
                ]
            },
            "classes.a.when.argument",
            "this key is missing",
        ),
    ],
)
def test_a_field_is_refused_in_plain_words(
    part: dict[str, Any], path: str, says: str
) -> None:
    assert says in said_of(**part)[f"tools.pay.{path}"]


def test_nothing_of_how_it_is_checked_is_said() -> None:
    """Slips in every kind of place, and not one internal name of a validator."""
    data = builders.data(
        {"rules": [{**rule(tier="nope"), "tools": ["a b"]}], "zone": 1, "queues": []},
        classes=[{"name": "B", "risk": "x", "profile": {}, "when": {"recipients": []}}],
        executor={"kind": "callable", "path": "os; rm"},
        reader={"kind": "nothing"},
        timeout=5,
        steps={"block": []},
    )
    errors = refused(data)
    assert len(errors) > 8
    for error in errors:
        assert not INTERNALS.search(error["path"] + error["message"]), error


# Keys that nothing reads.
def test_a_word_that_json_schema_does_not_know_is_refused() -> None:
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["properties"]["to"]["maxLenght"] = 5
    assert said_of(schema=schema) == {
        "tools.pay.schema.properties.to.maxLenght": (
            "maxLenght is not a keyword of JSON Schema; did you mean maxLength?"
        )
    }


def test_an_argument_that_is_required_is_declared() -> None:
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["required"].append("amout")
    (message,) = said_of(schema=schema).values()
    assert message == "amout is not among the properties; did you mean amount?"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"limits": [{"amount": "5.00", "currency": "USD"}]}, "limits"),
        (
            {
                "presenter": "money",
                "balances": [{"fact": "kept", "label": "Kept", "moves": "up"}],
            },
            "balances",
        ),
        ({"profile": {**SAFE, "reversible": False}, "floor": "approve"}, None),
    ],
)
def test_a_setting_without_an_effect_is_refused(
    part: dict[str, Any], path: str | None
) -> None:
    assert f"tools.pay.{path or 'profile.reversible_because'}" in said_of(**part)


def test_a_tool_that_its_agent_performs_says_how_often_it_is_redeemed() -> None:
    """`claims.over` counts the attempts of agents, too."""
    data = builders.data(executor={"kind": "agent"}, retry={"attempts": 3})
    assert parse_document(data).tools["pay"].retry.attempts == 3


# What undoes what is called reversible.
def test_reversible_names_what_undoes_it_or_says_why_it_needs_nothing() -> None:
    bare = {"reversible": True, "blast_radius": 1}
    (message,) = said_of(profile=bare).values()
    assert "compensation" in message
    assert "reversible_because" in message
    own = {
        "tool": "pay",
        "args": {
            "to": "$args.to", "amount": "$args.amount", "currency": "$args.currency"
        },
    }  # fmt: skip
    builders.document(profile=bare, compensation=own)
    builders.document(profile={**bare, "reversible_because": "It only reads."})
    assert said_of(profile={**bare, "reversible_because": " "})
    lax = {"name": "lax", "risk": "low", "profile": bare}
    assert "tools.pay.classes.lax.profile.reversible" in said_of(classes=[lax])


# Names.
def test_names_of_policies_classes_and_queues_take_both_strokes() -> None:
    effect_class = {"name": "own-house_mail", "risk": "low", "profile": SAFE}
    queues = {"a-b_c": "Money", "money": "Money"}
    document = builders.document(
        {"name": "a-b_c", "queues": queues}, queue="a-b_c", classes=[effect_class]
    )
    assert document.tools["pay"].queue == "a-b_c"


# What was in force before stays in force.
@pytest.mark.django_db
def test_what_an_earlier_release_stored_is_read_back_as_it_was(gate: Gate) -> None:
    """Its checks were fewer: what new documents may not say rules on."""
    version = store.load_active_policy()
    old = {**version.document}
    old["tools"] = {k: {**v} for k, v in old["tools"].items()}
    old["tools"]["look"]["profile"] = {"reversible": True, "blast_radius": 1}
    old["tools"]["look"]["presenter"] = "typo"
    with pytest.raises(InvalidPolicy):
        parse_document(old)
    stored = PolicyVersion(document=old, digest="sha256:old", number=99)
    assert active.load_document(stored).tools["look"].presenter == "typo"


# Functions.
@pytest.mark.django_db
def test_a_function_that_is_not_there_is_refused_when_saved(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["look"]["executor"]["path"] = "tests.worlds.keyd"
    document["tools"]["tag"]["executor"]["path"] = "tests.nowhere.keyed"
    with pytest.raises(InvalidPolicy) as refusal:
        versions.save_draft(text_or_mapping=document, author=gate.adam)
    messages = {e["path"]: e["message"] for e in refusal.value.errors}
    assert messages == {
        "tools.look.executor": (
            "tests.worlds has no function keyd; did you mean keyed?"
        ),
        "tools.tag.executor": (
            "tests.nowhere cannot be imported here (ModuleNotFoundError)"
        ),
    }


@pytest.mark.django_db
def test_options_that_a_verifier_does_not_take_are_refused(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["verifiers"] = [
        {
            "kind": "callable",
            "path": "reviews.verifier_rules.maximum_amount",
            "options": {"maxmum": "5.00", "currency": "USD"},
        }
    ]
    with pytest.raises(InvalidPolicy) as caught:
        versions.save_draft(text_or_mapping=document, author=gate.adam)
    (error,) = caught.value.errors
    assert error["path"] == "tools.pay.verifiers.0"
    assert "maximum" in error["message"]


@pytest.mark.django_db
def test_the_command_prints_line_path_and_repair(gate: Gate, tmp_path: Any) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(written(builders.data(presenter="moeny")))
    with pytest.raises(CommandError) as failed:
        call_command("load_policy", by="adam", file=file, stdout=StringIO())
    line = "tools.pay.presenter: moeny is not a view; did you mean money?"
    assert re.search(rf"^  line \d+: {re.escape(line)}$", str(failed.value), re.M)


MANY = {f"x{number}": 1 for number in range(29_000)}


@pytest.mark.parametrize(
    ("path", "part", "said"),
    [
        ("", MANY, "at most 1,000 are allowed here, not 29,"),
        ("tools.pay", MANY, "at most 1,000 are allowed here, not 29,"),
        ("rules", [{}] * 29_000, "at most 1,000 are allowed here, not 29,000"),
        ("steps.approve", [{}] * 29_000, "at most 5,000 are allowed here, not 29,000"),
        ("queues", MANY, "at most 1,000 are allowed here, not 29,"),
    ],
)
def test_a_part_with_too_many_members_is_refused_as_a_whole(
    path: str, part: Any, said: str
) -> None:
    document = factories.document_of_tests()
    inside = document
    *around, last = path.split(".")
    for name in around:
        inside = inside[name]
    if isinstance(part, dict):
        (inside[last] if last else inside).update(part)
    else:
        inside[last] = part
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(document)
    ((error),) = refused.value.errors
    assert error["path"] == path
    assert error["message"].startswith(said)
