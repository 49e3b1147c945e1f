"""Closed forms match exactly or not at all."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from policies.effect_classes import OneOf, Recipients

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
        # Routes: the mail server of our domain would send these on to another host.
        ({"to": ["x%evil.example@own.example"]}, False),
        ({"to": ["evil.example!x@own.example"]}, False),
        ({"to": ["@own.example:x@evil.example"]}, False),
        ({"to": ['"x@evil.example"@own.example']}, False),
        ({"to": ['"x%evil.example"@own.example']}, False),
        ({"to": ["x\\@evil.example@own.example"]}, False),
        ({"to": ["x=40evil.example@own.example"]}, False),
        ({"to": ["-oQ/tmp@own.example"]}, False),
        ({"to": ["x@own.example\n"]}, False),
        ({"to": ["x@own.example\r\nBcc: x@evil.example"]}, False),
        ({"to": ["a.b-c_d+e@own.example"]}, True),
    ],
)
def test_every_recipient_must_be_ours_to_the_letter(args, matches):
    assert OWN.matches(args) is matches


def test_an_address_may_be_named_in_full():
    form = Recipients(recipients=["to"], addresses=["qa@own.example"])
    assert form.matches({"to": ["qa@own.example"]})
    assert not form.matches({"to": ["Qa@own.example"]})


BREAKS = ["\r\n", "\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\0"]


@pytest.mark.parametrize("form", [OWN, Recipients(**OWN.model_dump())])
@pytest.mark.parametrize("name", ["subject", "reply_to", "from", "headers"])
@pytest.mark.parametrize("sign", BREAKS)
def test_a_line_break_in_a_header_is_nobody_of_ours(form, name, sign):
    args = {"to": ["a@own.example"], name: f"Hello{sign}Bcc: x@evil.example"}
    assert not form.matches(args)
    assert not form.matches({**args, name: [{"Subject": args[name]}]})
    assert form.matches({**args, name: "Hello, Bcc: x@evil.example"})


def test_the_text_of_a_mail_may_have_lines():
    assert OWN.matches({"to": ["a@own.example"], "body": "Hello,\r\nBcc: nobody\n"})


def test_a_policy_names_the_headers_of_its_tool():
    form = Recipients(recipients=["to"], domains=["own.example"], headers=["topic"])
    assert form.arguments == ["to", "topic"], "which are arguments of the tool"
    assert not form.matches({"to": ["a@own.example"], "topic": "a\nBcc: b@c.example"})
    assert form.matches({"to": ["a@own.example"], "topic": "a"})


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
