"""Of every answer that a question offers exactly one is true, and that one is taken.

The truth comes from the bytes: the arguments, the state as read and, for the store,
what its database says before and after the effect. Never from how a question is made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demo.store import database, effects, readers
from policies.documents import ToolDefinition, parse_document
from reviews.attention_checks import questions as micro_checks
from reviews.attention_checks.questions import NONE_OF_THESE, AttentionQuestion
from reviews.presenters import Presentation, present_effect
from reviews.presenters.arguments import collect_leaves
from reviews.presenters.shapes import ValueRow
from reviews.presenters.views import GroupView
from tests.reviews.presenters import kinds

SEEDS = 60
DEMO = Path(__file__).parents[3] / "demo" / "policy.yaml"
ADDRESS = {
    "name": "Ruben",
    "line1": "12 Alder Row",
    "city": "Harwick",
    "postal_code": "1010",
    "country": "US",
}


def seeds(number: int = SEEDS) -> Iterator[bytes]:
    for one in range(number):
        yield hashlib.sha256(str(one).encode()).digest()


def questions(
    shown: Presentation, tool: ToolDefinition
) -> Iterator[tuple[str, AttentionQuestion]]:
    """Each question of some seeds, with the label that it asks about."""
    for seed in seeds():
        found = micro_checks.build_question(shown, seed, tool.arguments)
        if found is not None:
            labels = [part.text for part in found.parts if part.value]
            yield (labels[0] if labels else ""), found


def moves(args: Mapping[str, Any], before: Mapping[str, Any] | None) -> set[str]:
    """Arguments whose value is not known to be what it was."""
    known = before or {}
    return {name for name in args if name not in known or known[name] != args[name]}


def labelled(shown: Presentation) -> Iterator[tuple[str, str, str]]:
    """Label, path and value of each row of the page, wherever it is."""
    groups = [view.rows for view in shown.views if isinstance(view, GroupView)]
    rows: list[ValueRow] = [*shown.other, *shown.unchanged, *shown.now]
    for row in [*rows, *(row for group in groups for row in group)]:
        yield row.label, row.path, row.cell.text
    for change in shown.changes:
        if change.after is not None:
            yield change.label, change.path, change.after.text


def without_place(label: str) -> str:
    return re.sub(r"( \d+)+$", "", label)


def true_values(label: str, shown: Presentation) -> set[str]:
    wanted = without_place(label).casefold()
    return {
        text.casefold()
        for name, _, text in labelled(shown)
        if without_place(name).casefold() == wanted
    }


def may_change(
    label: str, shown: Presentation, args: Mapping[str, Any], before: Any
) -> bool:
    """Whether any field of this label moves, or may move because nothing is known."""
    moving = moves(args, before)
    paths = [change.path for change in shown.changes if change.label == label]
    # A label may itself end in a number: "Address, line 1".
    paths += [
        p for name, p, _ in labelled(shown) if label in {name, without_place(name)}
    ]
    found = {re.split(r"[.\[]", path)[0] for path in paths}
    stays = {path for path in paths if _same_leaf(path, args, before)}
    return bool(found & moving and not stays) or not found & set(args)


def _same_leaf(path: str, args: Mapping[str, Any], before: Any) -> bool:
    old = {leaf.path: leaf.value for leaf in collect_leaves(before or {})}
    new = {leaf.path: leaf.value for leaf in collect_leaves(args)}
    return path in old and path in new and old[path] == new[path]


def is_true(
    option: str,
    label: str,
    asked: AttentionQuestion,
    shown: Presentation,
    given: tuple[Mapping[str, Any], Any],
) -> bool | None:
    """Whether an answer is true; None where only the count of a page can tell."""
    kind = asked.id.partition(":")[0]
    args, before = given
    if kind in {"after", "given", "view"}:
        return option.casefold() in true_values(label, shown)
    if kind == "changes":
        return may_change(option, shown, args, before)
    if kind == "reversal":
        return option == shown.reversal.word
    if kind == "recipients":
        boxes = [leaf.value for leaf in collect_leaves(_recipients(args))]
        return option == str(len({box.casefold() for box in boxes if box}))
    if kind == "program":
        return option in json.dumps(args)
    if kind == "file":
        return option in {args.get("path")} or f"b/{option}\n" in str(args.get("diff"))
    return None


def _recipients(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: args[name] for name in ("to", "cc", "bcc") if args.get(name)}


def check(
    shown: Presentation,
    tool: ToolDefinition,
    args: Mapping[str, Any],
    before: Any,
) -> int:
    """Exactly one answer of every question is true, and it is taken."""
    count = 0
    for label, asked in questions(shown, tool):
        count += 1
        offered = asked.options[:-1]
        told = [is_true(o, label, asked, shown, (args, before)) for o in offered]
        if None in told:
            assert len(set(offered)) == len(offered)
            continue
        true = [n for n, one in enumerate(told) if one] or [len(offered)]
        assert true == [asked.right], (asked, told)
        stem = "".join(part.text for part in asked.parts).lower()
        if asked.options[asked.right] == NONE_OF_THESE:
            assert "which of these" not in stem
            assert "one of these" not in stem
    return count


@pytest.mark.parametrize("name", kinds.EXAMPLES)
def test_exactly_one_answer_is_true_for_every_tool(name: str) -> None:
    args, before = kinds.EXAMPLES[name]
    assert check(kinds.show(name), kinds.definition(name), args, before)


states = st.sampled_from(["absent", "same", "other"])


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.sampled_from(sorted(kinds.EXAMPLES)),
    st.lists(states, min_size=8, max_size=8),
    st.booleans(),
)
def test_exactly_one_answer_is_true_whatever_was_read(
    name: str, how: list[str], extra: bool
) -> None:
    args, _ = kinds.EXAMPLES[name]
    tool = kinds.definition(name)
    other = {"true": False, "text": "something else", "list": ["elsewhere"]}
    before: dict[str, Any] = {"orders": 3, "Address": "1 Elm"} if extra else {}
    for (key, value), state in zip(args.items(), how, strict=False):
        if state == "same":
            before[key] = value
        elif state == "other":
            kind = "list" if isinstance(value, list) else "text"
            before[key] = other["true"] if isinstance(value, bool) else other[kind]
    check(present_effect(tool, args, before=before or None), tool, args, before)


# What may happen at the store, with its real database before and after.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("delete_customer", {"customer_id": "C-1001"}),
    ("delete_customer", {"customer_id": "C-1044"}),
    (
        "process_refund",
        {"order_id": "78201", "amount": "5.00", "currency": "USD", "reason": "damaged"},
    ),
    ("create_return_label", {"order_id": "78201", "reason": "damaged"}),
    ("add_label", {"order_id": "78201", "label": "vip"}),
    ("check_inventory", {"sku": "NG-1004"}),
    (
        "send_email",
        {
            "to": ["dana@mail.example"],
            "cc": ["sam@northgate.example"],
            "subject": "Your order",
            "body": "It is on its way.",
        },
    ),
]


def _orders_on_the_way() -> list[str]:
    orders = database.data("orders")
    return [one["id"] for one in orders if one["status"] == "shipped"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite3"
    database.prepare(path)
    return path


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with database.reading(path) as db:
        names = ("customer", "purchase")
        return {n: [tuple(r) for r in db.execute(f"SELECT * FROM {n}")] for n in names}


@pytest.mark.parametrize(
    ("name", "args"), CALLS, ids=[f"{name}-{n}" for n, (name, _) in enumerate(CALLS)]
)
def test_exactly_one_answer_is_true_at_the_store(
    store: Path, name: str, args: dict[str, Any]
) -> None:
    tool = demo_tool(name)
    reading = readers.read(store, name, args)
    shown = shown_of(tool, args, reading)
    assert check(shown, tool, args, reading["before"])
    answer = effects.perform(store, name, args, "k1")
    after = readers.read(store, name, args)["before"] or {}
    fields = {reading["labels"].get(key, key): key for key in reading["before"] or {}}
    if answer["status"] != "succeeded":
        return
    for _, asked in questions(shown, tool):
        if not asked.id.startswith("changes:"):
            continue
        for number, option in enumerate(asked.options[:-1]):
            if option in fields and number != asked.right:
                key = fields[option]
                assert after.get(key) == reading["before"][key], (option, asked)


def test_an_address_change_has_one_true_answer(store: Path) -> None:
    tool = demo_tool("change_shipped_address")
    fields = tool.arguments["properties"]["address"]["properties"]
    address = {key: ADDRESS.get(key, "x") for key in fields}
    orders = _orders_on_the_way()
    assert orders
    for order in orders[:5]:
        args = {"order_id": order, "address": address}
        reading = readers.read(store, tool.name, args)
        shown = shown_of(tool, args, reading)
        assert check(shown, tool, args, reading["before"])


def test_a_deletion_is_not_asked_which_field_changes(store: Path) -> None:
    """The effect erases what the reader gave and no argument names."""
    tool, args = demo_tool("delete_customer"), {"customer_id": "C-1044"}
    reading = readers.read(store, tool.name, args)
    shown = shown_of(tool, args, reading)
    for _, asked in questions(shown, tool):
        assert not asked.id.startswith("changes:")


def test_what_no_argument_names_is_never_a_wrong_answer() -> None:
    args, before = kinds.EXAMPLES["update_customer"]
    shown = kinds.show("update_customer")
    for _, asked in questions(shown, kinds.definition("update_customer")):
        if asked.id.startswith("changes:"):
            assert "Orders" not in asked.options
    assert before is not None
    assert "orders" in before
    assert "orders" not in args


def test_a_question_quotes_the_label_in_a_sentence() -> None:
    shown = kinds.show("update_customer")
    label = replace(shown.changes[0], label="Refunded to the customer")
    shown = replace(shown, changes=(label, *shown.changes[1:]))
    tool = kinds.definition("update_customer")
    stems = {
        "".join(part.text for part in asked.parts)
        for _, asked in questions(shown, tool)
    }
    about = {stem for stem in stems if "Refunded to the customer" in stem}
    assert not any(stem.startswith("What will") for stem in about)
    assert not any("One of these" in stem for stem in stems)


def demo_tool(name: str) -> ToolDefinition:
    text = DEMO.read_text().replace("${STORE_URL}", "http://store.example")
    return parse_document(text).tools[name]


def shown_of(
    tool: ToolDefinition, args: Mapping[str, Any], reading: Mapping[str, Any]
) -> Presentation:
    return present_effect(
        tool, args, before=reading["before"], labels=reading["labels"]
    )
