"""Arguments and results of functions as JSON, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from counterseal_client import InvalidArguments
from counterseal_client.signatures import ToolSignature, build_call_id, build_call_key


@dataclass
class Address:
    city: str
    postcode: str = ""


def ship(
    order: str,
    to: Address,
    amount: Decimal,
    on: date | None = None,
    copies: int = 1,
    json: str = "",
) -> Address:
    raise NotImplementedError


SHIP = ToolSignature("ship", ship)
ARGS = {
    "order": "1",
    "to": {"city": "Ghent", "postcode": ""},
    "amount": "1.50",
    "copies": 1,
    "json": "",
}


def test_arguments_go_to_json_and_back() -> None:
    given = ("1", Address("Ghent"), Decimal("1.50"))
    assert SHIP.bind_arguments(*given) == ARGS
    loaded = SHIP.load_arguments({**ARGS, "on": "2026-11-25"})
    assert loaded["to"] == Address("Ghent")
    assert (loaded["amount"], loaded["on"]) == (Decimal("1.50"), date(2026, 11, 25))


def test_arguments_of_a_model_are_taken_as_json() -> None:
    assert SHIP.dump_arguments(ARGS) == ARGS


def test_the_schema_is_closed_and_names_what_is_required() -> None:
    schema = SHIP.build_schema()
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["order", "to", "amount"]
    assert list(schema["properties"]) == list(SHIP.names)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"copies": "2"}, "copies"),
        ({"copies": True}, "copies"),
        ({"order": 7}, "order"),
        ({"to": {"city": 7}}, "to.city"),
        ({"bribe": "1"}, "bribe"),
    ],
)
def test_another_type_or_argument_is_refused_by_its_path(
    change: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        SHIP.load_arguments({**ARGS, **change})
    assert [error.path for error in caught.value.errors] == [path]


def test_a_value_is_never_repeated_in_an_error() -> None:
    with pytest.raises(InvalidArguments) as caught:
        SHIP.load_arguments({**ARGS, "order": ["secret"]})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda *args: None, "name each argument"),
        (lambda x: None, "needs a type annotation"),
    ],
)
def test_people_can_only_approve_named_arguments(function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ToolSignature("tool", function)


@pytest.mark.parametrize("value", [1, "x", None, [1], {"value": 1}, {"a": 1}])
def test_any_result_comes_back_as_it_was(value: Any) -> None:
    def find() -> Any:
        raise NotImplementedError

    signature = ToolSignature("find", find)
    reported = signature.dump_result(value)
    assert isinstance(reported, dict)
    assert signature.load_result(reported) == value


def test_a_typed_result_comes_back_typed() -> None:
    assert SHIP.load_result(SHIP.dump_result(Address("Ghent"))) == Address("Ghent")


def test_a_result_that_is_no_json_does_not_hide_the_effect() -> None:
    assert SHIP.dump_result(object())["value"].startswith("<object")


def test_keys_differ_by_thread_and_call_and_hold_no_digits() -> None:
    keys = {build_call_key(t, c) for t in ("a", "b") for c in ("1", "2")}
    assert len(keys) == 4
    assert not any(character.isdigit() for key in keys for character in key)


def test_the_order_of_arguments_makes_no_other_call() -> None:
    one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert build_call_id("t", one, 1) == build_call_id("t", two, 1)
    assert build_call_id("t", one, 1) != build_call_id("t", one, 2)
