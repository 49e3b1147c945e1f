"""An entry or a value that an error of the policy prints is accepted where the error
stood. The texts are those of the source: a new one needs its place here."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from policies import budgets, money
from policies.documents import parse_document
from policies.documents.names import MoneyPath
from policies.group_access import parse_groups
from tests.guards import ROOT
from tests.policies import builders
from tests.printed.texts import Text, list_texts

TELLS = re.compile(r"\b(?:write|such as|like|add|[Ss]et) ")
PAID = {"tool": "pay", "key": "agent", "window": "1h"}
COUNTED: dict[str, Any] = {
    "type": "object",
    "required": ["to", "amount", "currency"],
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "integer"},
        "currency": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["price", "currency"],
                "properties": {
                    "price": {"type": "string"},
                    "currency": {"type": "string"},
                },
            },
        },
    },
}
OPEN = {"days": ["mon"], "from": "07:00", "to": "23:00"}


def document(**changes: Any) -> None:
    parse_document(builders.data(changes))


def tool(**changes: Any) -> None:
    parse_document(builders.data(**changes))


def lines(**amount: Any) -> None:
    schema = {**COUNTED, "properties": {**COUNTED["properties"]}}
    schema["properties"]["amount"] = {"type": "string"}
    entry = {"path": "lines[*].price", "currency": "lines[*].currency", **amount}
    tool(schema=schema, amounts=[entry])


def open_at(time: str) -> None:
    hours = [{**OPEN, "from": time}, {**OPEN, "to": time}]
    document(calendars={"desk": {"zone": "UTC", "open": hours[time == "24:00" :][:1]}})


def zoned(text: str) -> None:
    assert datetime.fromisoformat(text).tzinfo


def route(channel: str) -> None:
    document(routes=[{"to": [channel]}])


def chip(text: str) -> None:
    tool(effect=f"Pay {{amount}} {{currency}}{text.replace('{chip.name}', 'note')}")


# The text, the values in it, and where they are pasted.
Paste = tuple[str, tuple[str, ...], Callable[[Any], object]]
GROUPS = '{"gate-money": {"role": "reviewer", "queues": ["money"]}}'
PASTED: list[Paste] = [
    (
        f"must be JSON like {GROUPS}, with one of the roles {{roles}}",
        (GROUPS,),
        parse_groups,
    ),
    (
        "write a duration such as 90s, 30m, 24h or 7d",
        ("90s", "30m", "24h", "7d"),
        lambda value: tool(timeout=value),
    ),
    (
        'write a time of day in quotes, such as "08:00" or "24:00"',
        ("08:00", "24:00"),
        open_at,
    ),
    (
        "this is not a time zone such as Europe/Berlin",
        ("Europe/Berlin",),
        lambda value: document(zone=value),
    ),
    (
        "a string: money is never a number; write unit: minor if it is an integer in"
        " the currency's smallest unit",
        ("minor",),
        lambda value: tool(
            schema=COUNTED,
            money=[{"amount": "amount", "currency": "currency", "unit": value}],
        ),
    ),
    (
        "a call may leave out {name}, and the policy must say what it then moves: write"
        " absent: none for nothing or absent: all for everything, or let the schema"
        " require a value",
        ("none", "all"),
        lambda value: lines(absent=value),
    ),
    (
        "set currency: an argument, or a code such as USD",
        ("USD",),
        lambda value: lines(currency=value, absent="none"),
    ),
    (
        "write three capital letters, such as USD",
        ("USD",),
        lambda value: document(currency=value),
    ),
    (
        'write the name of a tool, or "*" for every tool',
        ("*",),
        lambda value: document(
            rules=[{**builders.rule(tier="approve"), "tools": [value]}]
        ),
    ),
    (
        "a rule's id consists of lowercase letters, digits and _, in parts joined by"
        " dots, such as refund.over_500",
        ("refund.over_500",),
        lambda value: document(rules=[builders.rule(value, tier="approve")]),
    ),
    (
        "write the path of an argument, such as total, order.total or items[*].price",
        ("total", "order.total", "items[*].price"),
        TypeAdapter(MoneyPath).validate_python,
    ),
    (
        "write a Python function as package.module.function",
        ("package.module.function",),
        lambda value: tool(executor={"kind": "callable", "path": value}),
    ),
    (
        "write a channel, such as email or slack, or a channel and a place, such as"
        " slack:#refunds",
        ("email", "slack", "slack:#refunds"),
        route,
    ),
    (
        "write a URL that begins with http:// or https://",
        ("http://", "https://"),
        lambda value: tool(executor={"kind": "webhook", "url": f"{value}shop.example"}),
    ),
    (
        "it is called repeatedly: write execution_class: keyed",
        ("keyed",),
        lambda value: tool(execution_class=value),
    ),
    (
        "{chip.name} may be absent, so it cannot be named: write {{chip.name}?}",
        ("{{chip.name}?}",),
        chip,
    ),
    (
        "{piece.name} may be absent, which leaves the word before it alone: put both in"
        " brackets, such as [ to {{piece.name}?}]",
        ("[ to {{piece.name}?}]",),
        lambda value: chip(value.replace("piece", "chip")),
    ),
    ("; write table for plain rows", ("table",), lambda value: tool(presenter=value)),
    (
        "only the view money shows {field}: write presenter: money",
        ("money",),
        lambda value: tool(presenter=value),
    ),
    (
        'an amount must be a decimal string such as "899.00"',
        ("899.00",),
        lambda value: money.parse(value, "USD"),
    ),
    (
        '{short}: {error}; write a line such as "500.00 USD"',
        ("500.00 USD",),
        budgets.parse_budget,
    ),
    (
        'this is not a decimal amount such as "899.00"',
        ("899.00",),
        lambda value: money.parse(value, "USD"),
    ),
    (
        "an amount in minor units must be a whole number like 89900",
        ("89900",),
        lambda value: money.parse_minor(int(value), "USD"),
    ),
    (
        'the arguments must be an object: write "type: object"',
        ("object",),
        lambda value: tool(schema={**builders.TOOL["schema"], "type": value}),
    ),
    (
        "at has no zone: write 2026-11-24T10:00:00+00:00",
        ("2026-11-24T10:00:00+00:00",),
        zoned,
    ),
    (
        "the variable {name} is not set: add --set {name}=VALUE",
        ("{name}=VALUE",),
        lambda value: parse_document(
            builders.data(title="${NAME}"),
            variables=dict([value.replace("{name}", "NAME").split("=")]),
        ),
    ),
]
# They say what to do in words, and print nothing to paste.
IN_WORDS = {
    "COUNTERSEAL_CALLABLES does not list the module of {}: add it there, or name"
    " another",
    "set either above or below",
    "; add it there",
    "whole requires absent: all: add it, or remove whole",
    "set either path or fact",
    "unit and absent are about arguments: remove them, or write path",
    "write it in {document.currency}",
    "add when: only the strictest class works without one",
    "name the tool that undoes it under compensation, or say why it needs none under"
    " reversible_because, or write false",
    "set either tool or event",
    "alone requires amount: set amount, or remove alone",
    "write 1 to 200 visible ASCII characters, without spaces",
    "a reader runs before there is a result: write $args",
    "write $result.name, a member of the tool's result",
    "write $args.name, $result.name or a plain value",
    "a brace is unbalanced; write {argument}",
    "set either url or path",
    "write true or false",
    "write a mapping of keys to values",
    "write a list",
    "write a string; put it in quotes",
    "write a whole number",
    "; write {_join_choices(names)}",
    "write {_join_choices(_QUOTED.findall(expected)) or expected}",
    "this key is missing: write the kind",
    "set addresses or domains",
    "This gate runs in solo mode, for one person. Stop it, start it without --solo, and"
    " add people then.",
    "set a role, a ceiling or an email address",
    'write {"tool": ..., "args": {...}}',
}


def tells(text: Text) -> bool:
    """Whether it is a text of the policy that tells its author what to write."""
    ours = text.path.startswith(("policies/", "reviews/governance/"))
    return ours and text.printed and "/management/" not in text.path


def test_every_text_that_tells_what_to_write_is_known() -> None:
    texts = {text.text for text in list_texts() if tells(text)}
    told = {text for text in texts if TELLS.search(text)}
    assert told == {text for text, _, _ in PASTED} | IN_WORDS


@pytest.mark.parametrize(
    ("text", "value", "paste"),
    [(text, value, paste) for text, values, paste in PASTED for value in values],
)
def test_what_a_text_prints_is_accepted(
    text: str, value: str, paste: Callable[[Any], object]
) -> None:
    assert value in text
    paste(value)


# What writes whole entries of tools, and the test that loads what it wrote.
WRITERS = {
    "client/counterseal_client/tools.py": "tests/client/test_tools.py::"
    "test_the_printed_entry_loads_and_the_same_call_then_waits",
    "client/counterseal_client/mcp/policy_entries.py": "tests/client/mcp/"
    "test_policy_entries.py::load_imported",
}
ENTRIES = [
    path
    for name in ("client", "demo")
    for path in sorted((ROOT / name).rglob("*.yaml"))
    if "node_modules" not in path.parts and "execution_class:" in path.read_text()
]


def test_every_writer_of_entries_is_known() -> None:
    """Further ones write such a text or such a key."""
    found = {text.path for text in list_texts() if text.text == "execution_class"}
    assert {path for path in found if path.startswith("client/")} == set(WRITERS)
    for test in WRITERS.values():
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text()


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.parent.name)
def test_a_file_of_entries_is_accepted(path: Path) -> None:
    """The file alone, or what it has to add to a policy."""
    given = yaml.safe_load(path.read_text())
    whole = given if "currency" in given else builders.data()
    for part in set(given) - {"currency", "name"} if whole is not given else ():
        whole[part] = {**whole.get(part, {}), **given[part]}
    parse_document(whole, variables={"STORE_URL": "http://127.0.0.1:8010"})
