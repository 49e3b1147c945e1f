"""`counterseal policy try`: what a policy says of calls, without a database."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

POLICY = Path(__file__).parents[3] / "demo" / "policy.yaml"
AT = "2026-11-24T15:00:00+00:00"
READING = {
    "keys": {"customer": "C-1", "order": "78291"},
    "facts": {
        "order_total": "899.00",
        "order_total_currency": "USD",
        "order_refunded": "0.00",
        "order_refunded_currency": "USD",
        "delivered": True,
        "customer_name": "Casey Lindholm",
        "payment_method": "card ending 4242",
        "shipped": True,
    },
}


def refund(amount: str, **more: Any) -> dict[str, Any]:
    args = {
        "order_id": "78291",
        "amount": amount,
        "currency": "USD",
        "reason": "damaged",
    }
    return {"tool": "process_refund", "args": args, "reading": READING, **more}


@pytest.fixture
def trying(tmp_path: Path) -> Any:
    """`trying(call, ...)`: the trials, and the error that the command ended with."""

    def run(*calls: Any, table: bool = False, at: str | None = AT) -> Any:
        file = tmp_path / "calls.jsonl"
        lines = [c if isinstance(c, str) else json.dumps(c) for c in calls]
        file.write_text("\n".join(lines))
        out, error = StringIO(), ""
        try:
            call_command(
                "try_policy",
                POLICY,
                calls=file,
                at=at,
                json=not table,
                variables=["STORE_URL=http://store.example"],
                stdout=out,
            )
        except CommandError as found:
            error = str(found)
        text = out.getvalue()
        if table:
            return text, error
        return [json.loads(line) for line in text.splitlines()], error

    return run


def test_each_call_gets_tier_rules_and_title(trying: Any) -> None:
    """No fixture of a database is asked for: a query would be an error."""
    found, error = trying(
        {"tool": "look_up_order", "args": {"order_id": "78291"}},
        refund("49.00"),
        refund("800.00"),
        {"tool": "wire_money", "args": {}},
    )
    assert error == ""
    assert [one["tier"] for one in found] == ["auto", "approve", "escalate", "approve"]
    assert found[0]["title"] == "Look up order 78291"
    title = "Refund 49.00 USD for order 78291 to Casey Lindholm, card ending 4242"
    assert found[1]["title"] == title
    assert "refund.over_500" in found[2]["rules"]
    assert (found[3]["rules"], found[3]["title"]) == (["tool.undeclared"], "Wire money")


def test_the_sums_are_of_the_calls_in_their_order(trying: Any) -> None:
    found, _ = trying(refund("60.00"), refund("60.00"))
    assert [one["tier"] for one in found] == ["approve", "escalate"]
    assert "refund.rolling_sum" in found[1]["rules"]


def test_without_a_reading_a_key_is_unresolved(trying: Any) -> None:
    call = refund("49.00")
    del call["reading"]
    (found,), _ = trying(call)
    assert found["tier"] == "block"
    assert "key.unresolved" in found["rules"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("not json", "this is not strict JSON"),
        ("[]", "write {"),
        ({"tool": "look_up_order", "args": {"order": "1"}}, "args.order"),
        (refund("4.999"), "args.amount"),
        (refund("4.00", wrong=1), "nothing reads wrong"),
        (refund("4.00", at="2026-01-01T10:00:00"), "at has no zone"),
        (refund("4.00", reading=[]), "reading is an object"),
        (refund("4.00", uncertain="x"), "could not convert"),
    ],
)
def test_a_line_that_is_no_call_is_named_and_ends_the_command_with_an_error(
    trying: Any, call: Any, says: str
) -> None:
    found, error = trying(refund("49.00"), call)
    assert error == "1 of 2 lines are not valid calls."
    assert found[0]["problem"] == ""
    assert (found[1]["line"], says in found[1]["problem"]) == (2, True), found[1]


def test_the_table_is_for_people_and_no_command_to_a_terminal(trying: Any) -> None:
    text, _ = trying(refund("49.00"), {"tool": "\x1b[2J", "args": {}}, table=True)
    head, first, second = text.splitlines()
    assert head.split() == ["line", "tool", "tier", "rules", "title"]
    assert "process_refund" in first
    assert "Refund 49.00 USD for order 78291" in first
    assert "\x1b" not in second
    assert "block" in second


def test_a_policy_with_a_slip_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.read_text().replace("presenter: money", "presenter: moeny"))
    calls = tmp_path / "calls.jsonl"
    calls.write_text("")
    with pytest.raises(CommandError) as found:
        call_command(
            "try_policy", file, calls=calls, variables=["STORE_URL=http://a.b"]
        )
    assert "presenter: moeny is not a view; did you mean money?" in str(found.value)
    assert "line " in str(found.value)


@pytest.mark.django_db
def test_without_a_time_it_is_the_databases(trying: Any) -> None:
    (found,), error = trying(refund("49.00"), at=None)
    assert (found["tier"], error) == ("approve", "")


@pytest.mark.parametrize("at", ["noon", "2026-11-24T15:00:00"])
def test_a_time_that_is_none_is_refused(trying: Any, at: str) -> None:
    found, error = trying(refund("49.00"), at=at)
    assert found == []
    assert error.startswith("--at")


def test_an_amount_that_a_call_leaves_out_is_everything_as_the_policy_says(
    trying: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POLICY.read_text().replace(
        "required: [order_id, amount, currency, reason]", "required: [order_id, reason]"
    )
    text = text.replace(
        "- {amount: amount, currency: currency}",
        "- {amount: amount, currency: currency, absent: all, whole: order_total}",
    )
    text = text.replace("Refund {amount} {currency} for", "Refund[ {amount?}] for")
    file = tmp_path / "optional.yaml"
    file.write_text(text)
    monkeypatch.setattr("tests.reviews.governance.test_simulation.POLICY", file)
    unsaid = refund("1.00")
    del unsaid["args"]["amount"], unsaid["args"]["currency"]
    unread = json.loads(json.dumps(unsaid))
    del unread["reading"]["facts"]["order_total"]
    found, error = trying(unsaid, unread)
    assert error == ""
    assert [one["tier"] for one in found] == ["escalate", "block"]
    assert "refund.over_500" in found[0]["rules"]
    assert "refund.over_10000" not in found[0]["rules"]
    assert found[0]["title"].endswith("(the whole amount)")
    assert "refund.over_10000" in found[1]["rules"]
