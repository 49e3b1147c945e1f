"""What of the reader's facts reviewers see: declared, checked, compared."""

from __future__ import annotations

from typing import Any

import pytest

from policies import conflicts
from policies.documents import InvalidPolicy, parse_document
from tests.policies import builders, store

READER: dict[str, Any] = {
    "reader": {"kind": "webhook", "url": "http://a.example/r"},
    "facts": ["total", "arrived"],
    "keys": ["customer"],
}
CONFLICT = {
    "id": "arrived",
    "text": "The note says lost; the carrier says delivered",
    "when": 'args.to == "lost" && before.arrived',
}


def refusal(**tool):
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(builders.data(**{**READER, **tool}))
    return {error["path"]: error["message"] for error in refused.value.errors}


def tool(**review):
    return builders.document(None, **READER, review=review).tools["pay"]


@pytest.mark.parametrize("field", ["facts", "columns"])
def test_a_fact_that_the_tool_does_not_declare_is_refused(field):
    errors = refusal(review={field: ["totl"]})
    assert errors == {
        f"tools.pay.review.{field}": "totl is not among the facts of this tool; did "
        "you mean total?"
    }


def test_an_unknown_fact_in_the_effect_sentence_is_refused():
    errors = refusal(effect="Pay {amount} to {before.nmae}")
    assert errors == {
        "tools.pay.effect": "nmae is not among the facts of this tool; write arrived "
        "or total"
    }


def test_more_than_six_facts_are_refused():
    names = [f"fact_{number}" for number in range(7)]
    errors = refusal(facts=names, review={"facts": names})
    assert list(errors) == ["tools.pay.review.facts"]


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("before.arived && args.to == 'x'", "pay has no before.arived"),
        ("args.tto == 'x' && before.arrived", "pay has no args.tto"),
        ("args.note == 'x' && before.arrived", "args.note may be absent"),
        ("before.arrived", "compare an argument with a fact of the reader"),
        ("args.to == 'x'", "compare an argument with a fact of the reader"),
        ("args.to == 'x' && before.arrived && clock.hour > 3", "compare an argument"),
        ("args.to ==", "Syntax error"),
    ],
)
def test_a_conflict_that_cannot_be_checked_is_refused(when, says):
    errors = refusal(review={"conflicts": [{**CONFLICT, "when": when}]})
    assert says in errors["tools.pay.review.conflicts.arrived.when"]


def test_a_conflict_stands_once():
    errors = refusal(review={"conflicts": [CONFLICT, CONFLICT]})
    assert errors == {
        "tools.pay.review.conflicts.arrived": "this id is used twice: give each its own"
    }


@pytest.mark.parametrize(
    ("args", "before", "found"),
    [
        ({"to": "lost"}, {"arrived": True}, [True]),
        ({"to": "lost"}, {"arrived": False}, []),
        ({"to": "broken"}, {"arrived": True}, []),
        ({"to": "lost"}, {}, [False]),
    ],
)
def test_a_conflict_is_found_where_it_holds_or_cannot_be_checked(args, before, found):
    facts = builders.facts(args=args, before=before)
    shown = conflicts.list_conflicts(tool(conflicts=[CONFLICT]), facts)
    assert [conflict["checked"] for conflict in shown] == found
    assert {conflict["id"] for conflict in shown} <= {"arrived"}


@pytest.mark.parametrize(
    ("reason", "delivered", "found"),
    [
        ("not_received", True, ["received"]),
        ("not_received", False, []),
        ("damaged", False, ["not_arrived"]),
        ("goodwill", True, []),
    ],
)
def test_the_store_compares_the_reason_of_a_refund_with_the_carrier(
    reason, delivered, found
):
    definition = store.shipped().tools["process_refund"]
    before = {**store.ORDER, "delivered": delivered}
    facts = store.facts(
        store.shipped(), "process_refund", {"reason": reason}, before=before
    )
    assert [
        conflict["id"] for conflict in conflicts.list_conflicts(definition, facts)
    ] == found
