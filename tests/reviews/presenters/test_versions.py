"""Two versions of the arguments: every difference is listed, and no credential."""

from __future__ import annotations

import json

from hypothesis import given, settings

from reviews.presenters import build_argument_subject, compare_versions
from tests.reviews.definitions import tool
from tests.reviews.presenters import kinds
from tests.reviews.presenters.test_present import objects

MONEY = {"money": [{"amount": "amount", "currency": "currency"}]}
REFUND = {"order_id": "78291", "amount": "40.00", "currency": "USD"}


def compare(older, args, **parts):
    found = compare_versions(build_argument_subject(tool(**parts), args, older))
    return [
        (
            one.kind,
            one.label,
            one.before and one.before.typed_text,
            one.after and one.after.typed_text,
        )
        for one in found
    ]


def test_new_dropped_and_changed_arguments_are_all_listed():
    older = REFUND | {"note": "late"}
    args = REFUND | {"amount": "58.50", "partial": True}
    assert compare(older, args, **MONEY) == [
        ("removed", "Note", "late", None),
        ("changed", "Amount", "40.00 USD", "58.50 USD"),
        ("added", "Partial", None, "yes (yes or no)"),
    ]


def test_each_amount_has_the_currency_of_its_own_version():
    args = REFUND | {"amount": "58.50", "currency": "EUR"}
    assert ("changed", "Amount", "40.00 USD", "58.50 EUR") in compare(
        REFUND, args, **MONEY
    )


def test_an_amount_that_cannot_be_read_has_no_currency():
    (found,) = compare(REFUND, REFUND | {"amount": "much"}, **MONEY)
    assert found == ("changed", "Amount", "40.00 USD", "much")


def test_an_argument_that_a_view_states_is_compared_too():
    older, definition = (
        kinds.EXAMPLES["run_command"][0],
        kinds.definition("run_command"),
    )
    newer = older | {"cmd": "rm -rf /"}
    (found,) = compare_versions(build_argument_subject(definition, newer, older))
    assert (found.path, found.after and found.after.typed_text) == ("cmd", "rm -rf /")


def test_entries_of_a_list_that_stay_in_order_have_no_row():
    found = compare({"to": ["a", "b", "c"]}, {"to": ["b", "c", "d"]})
    assert [one[2:] for one in found] == [("a", None), (None, "d")]
    assert compare({"to": ["a", "b"]}, {"to": ["b", "a"]})


def test_a_credential_is_concealed_in_both_versions():
    definition = kinds.definition("call_api")
    args = dict(kinds.EXAMPLES["call_api"][0])
    for older, newer in (
        (args, args | {"headers": {}}),
        (args | {"headers": {}}, args),
    ):
        found = compare_versions(build_argument_subject(definition, newer, older))
        assert "headers.Authorization" in [one.path for one in found]
        assert "sk-live" not in str(found)


@settings(max_examples=200)
@given(older=objects, args=objects)
def test_different_arguments_always_have_a_row(older, args):
    same = json.dumps(older, sort_keys=True) == json.dumps(args, sort_keys=True)
    assert (compare(older, args) == []) == same
