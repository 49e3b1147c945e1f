"""Closed forms match exactly or not at all."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from policies.classes import OneOf, Recipients

OWN = Recipients(recipients=["to", "cc"], domains=["own.example"])


@pytest.mark.parametrize(
    ("args", "matches"),
    [
        ({"to": ["a@own.example"]}, True),
        ({"to": "a@own.example"}, True),
        ({"to": ["a@own.example"], "cc": ["b@own.example"]}, True),
        ({"to": ["a@own.example"], "cc": []}, True),
        ({"to": ["a@own.example"], "cc": ["b@else.example"]}, False),
        ({"to": ["a@own.example"], "cc": None}, False),
        ({"to": []}, False),
        ({}, False),
        ({"to": [7]}, False),
        ({"to": ["a@OWN.example"]}, False),
        ({"to": ["a@own.example."]}, False),
        ({"to": ["a@own.example "]}, False),
        ({"to": ["a@sub.own.example"]}, False),
        ({"to": ["a@b@own.example"]}, False),
        ({"to": ["@own.example"]}, False),
        ({"to": ['"a"@own.example']}, False),
        ({"to": ["A <a@own.example>"]}, False),
        ({"to": ["a@evil.example,b@own.example"]}, False),
        ({"to": ["ä@own.example"]}, False),
    ],
)
def test_every_recipient_must_be_ours_to_the_letter(args, matches):
    assert OWN.matches(args) is matches


def test_an_address_may_be_named_in_full():
    form = Recipients(recipients=["to"], addresses=["qa@own.example"])
    assert form.matches({"to": ["qa@own.example"]})
    assert not form.matches({"to": ["Qa@own.example"]})


def test_a_form_must_name_somebody():
    with pytest.raises(ValidationError, match="addresses or domains"):
        Recipients(recipients=["to"])


def test_one_of_is_equality_of_texts():
    form = OneOf(argument="stage", one_of=["test", "1"])
    assert form.matches({"stage": "test"})
    assert not form.matches({"stage": "Test"})
    assert not form.matches({"stage": 1})
    assert not form.matches({"stage": ["test"]})
    assert not form.matches({})
