"""The sentence of a tool that has none of its own."""

from __future__ import annotations

from typing import Any

import pytest

from policies.documents import UnknownTools
from policies.documents.usual_sentences import build_title
from policies.tool_descriptions import ToolDescription
from policies.undeclared_tools import build_definition
from reviews.presenters import present_effect
from reviews.presenters.shapes import ValuePart
from tests.policies import builders

HELD = UnknownTools(hold="money")
CREDIT = {"amount": "89.00", "currency": "USD", "customer": "c-1"}


def read(name: str, args: dict[str, Any], text: str = "") -> str:
    definition = build_definition(name, args, HELD, ToolDescription(text))
    return "".join(part.text for part in present_effect(definition, args).sentence)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("issue_credit", "Issue credit"),
        ("issueCredit", "Issue credit"),
        ("IssueCredit", "Issue credit"),
        ("mcp__github__create_issue", "Create issue (github)"),
        ("payments.refund", "Refund (payments)"),
        ("rotate-logs", "Rotate logs"),
        ("send_SMS", "Send SMS"),
        ("getHTTPHeaders", "Get HTTP headers"),
        ("__run", "Run"),
        ("x", "X"),
        ("a" * 64, "A" + "a" * 63),
        ("___", "___"),
    ],
)
def test_a_name_becomes_words(name: str, title: str) -> None:
    assert build_title(name) == title


@pytest.mark.parametrize(
    ("name", "args", "sentence"),
    [
        ("issue_credit", CREDIT, "Issue credit: 89.00 USD to customer c-1"),
        (
            "issueCredit",
            {**CREDIT, "note": "late"},
            "Issue credit: 89.00 USD to customer c-1 with note late",
        ),
        ("send_note", {"to": "Ann", "text": "hi"}, "Send note to Ann with text hi"),
        ("mcp__shell__run", {"command": "ls"}, "Run (shell): ls"),
        ("rotate-logs", {}, "Rotate logs"),
        ("wipe", {"deep": True}, "Wipe with deep yes"),
        (
            "fill",
            {f"f{n}": 0 for n in range(9)},
            "Fill with f0 0 and f1 0 and f2 0 and f3 0 and f4 0 and f5 0 and more",
        ),
    ],
)
def test_a_call_becomes_a_sentence(
    name: str, args: dict[str, Any], sentence: str
) -> None:
    assert read(name, args) == sentence


def test_a_single_word_is_explained_in_the_agents_words() -> None:
    text = "Pay out a bonus.\n\nMore of it."
    assert read("process", {"n": 1}, text) == "Process “Pay out a bonus” with n 1"
    assert read("pay_bonus", {"n": 1}, text) == "Pay bonus with n 1"
    assert read("process", {"n": 1}, "w" * 300) == "Process with n 1"
    definition = build_definition("process", {}, HELD, ToolDescription(text))
    quoted = [
        part
        for part in present_effect(definition, {}).sentence
        if part.text.startswith("Pay out")
    ]
    assert quoted == [ValuePart("Pay out a bonus", untrusted=True)]


def test_the_name_of_an_argument_is_no_word_of_ours() -> None:
    name = "approved by finance, see"
    definition = build_definition("wipe", {name: "x"}, HELD)
    parts = present_effect(definition, {name: "x"}).sentence
    trusted = "".join(p.text for p in parts if not isinstance(p, ValuePart))
    assert "finance" not in trusted


def test_a_declared_tool_needs_no_sentence_of_its_own() -> None:
    tool = builders.document({}, effect="", risk="high").tools["pay"]
    args = {"to": "Ann", "amount": "5.00", "currency": "USD"}
    shown = present_effect(tool, args)
    assert "".join(part.text for part in shown.sentence) == "Pay: 5.00 USD to Ann"
    assert "Title made from names" in {tag.text for tag in shown.tags}
