"""What a batch's table says: what is common, what differs, and what stands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from desk.batches import table as tables
from desk.batches.columns import BatchLine, BatchTable
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Tag
from tests import factories

TOOL = ToolDefinition.model_validate(
    {**factories.document_of_tests()["tools"]["repay"], "name": "repay"}
)
VARYING = ["customer", "amount", "note"]


def line(number: int, *, tags: Sequence[Tag] = (), **args: Any) -> BatchLine:
    given = {"customer": f"C-{number}", "amount": "8.00", "currency": "USD", **args}
    minor = round(float(given["amount"]) * 100)
    subject = Subject(TOOL, given, conceal=lambda _: "[hidden]")
    return BatchLine(f"r-{number}", subject, Money(minor, given["currency"]), tags)


def build(*lines: BatchLine) -> BatchTable:
    return tables.build_table(lines, VARYING)


def reasons(table: BatchTable, number: int) -> Sequence[str]:
    return next(one.reasons for one in table.entries if one.id == f"r-{number}")


def test_what_is_equal_stands_once_and_what_differs_in_columns() -> None:
    table = build(*[line(n, amount=f"{n + 7}.00", note="late") for n in range(4)])
    assert [column.path for column in table.columns] == ["customer", "amount"]
    said = {label: cell.text for label, cell in table.constants}
    assert said == {"Currency": "USD", "Note": "late"}


def test_a_column_of_amounts_says_the_argument_and_not_all_that_is_moved() -> None:
    lines = [line(n, amount=f"{n + 7}.00") for n in range(3)]
    moved = [replace(one, amount=Money(10**6, "USD")) for one in lines]
    found = build(*moved)
    at = [column.path for column in found.columns].index("amount")
    cells = {entry.cells[at].text for entry in found.entries}
    assert cells == {"7.00", "8.00", "9.00"}


def test_a_far_number_is_first_with_its_distance() -> None:
    table = build(*[line(n) for n in range(5)], line(9, amount="27.20"))
    assert table.entries[0].id == "r-9"
    assert reasons(table, 9) == ["3.4 times the median"]
    assert table.outliers == ["r-9"]


def test_a_rare_value_stands_out_and_an_address_elsewhere_too() -> None:
    notes = ["late"] * 5 + ["broken"]
    table = build(*[line(n, note=note) for n, note in enumerate(notes)])
    assert reasons(table, 5) == ["Note differs from the usual value"]
    boxes = [f"{n}@shop.example" for n in range(5)] + ["9@shop.evil"]
    table = build(*[line(n, note=box) for n, box in enumerate(boxes)])
    assert reasons(table, 5) == ["Note has a different domain"]


def test_the_same_customer_twice_stands_out() -> None:
    lines = [
        *[line(n, amount=f"{n + 7}.00") for n in range(9)],
        line(9, customer="C-3"),
    ]
    table = build(*lines)
    assert reasons(table, 9) == ["Customer appears more than once"]
    assert reasons(table, 3) == ["Customer appears more than once"]


def test_what_only_some_views_call_out_is_a_reason_and_what_all_do_is_said_once() -> (
    None
):
    common, odd = Tag("External effect"), Tag("More than the order total", loud=True)
    table = build(
        *[line(n, tags=[common]) for n in range(4)], line(9, tags=[common, odd])
    )
    assert table.tags == [common]
    assert reasons(table, 9) == ["More than the order total"]


def test_the_distribution_names_its_ends_and_marks_the_far_bin() -> None:
    (spread,) = build(*[line(n) for n in range(5)], line(9, amount="27.20")).spreads
    assert (spread.smallest, spread.middle, spread.largest) == ("8.00", "8.00", "27.20")
    assert [bar.hot for bar in spread.bars] == [False, True]
    assert all(bar.y >= 0 and bar.y + bar.height == 32 for bar in spread.bars)


def test_a_column_of_few_values_takes_a_batch_apart() -> None:
    table = build(*[line(n, note="late" if n % 2 else "broken") for n in range(6)])
    ((column, values),) = table.splits
    assert column.path == "note"
    assert {tuple(value.ids) for value in values} == {
        ("r-0", "r-2", "r-4"),
        ("r-1", "r-3", "r-5"),
    }
    assert table.with_value(values[0].place) == values[0].ids
    assert table.with_value("7:7") == ()


def test_identical_members_have_no_column() -> None:
    table = build(line(1), BatchLine("r-2", line(1).subject, Money(800, "USD")))
    assert table.columns == []
    assert [entry.cells for entry in table.entries] == [[], []]


def test_a_sensitive_value_is_no_number_and_stays_hidden() -> None:
    hidden = TOOL.model_copy(update={"sensitive": ["amount"]})
    lines = [
        BatchLine(one.id, Subject(hidden, one.subject.args), one.amount)
        for one in (line(1, amount="7.00"), line(2, amount="900.00"))
    ]
    table = build(*lines)
    assert table.spreads == []
    assert "900" not in str([entry.cells for entry in table.entries])


FACTS = {
    "facts": ["owner", "city", "cost", "cost_currency", "gone"],
    "review": {"columns": ["owner", "city", "cost", "gone"]},
}


def with_facts(number: int, **facts: Any) -> BatchLine:
    tool = TOOL.model_validate({**TOOL.model_dump(by_alias=True), **FACTS})
    given = {"customer": f"C-{number}", "amount": "8.00", "currency": "USD"}
    subject = Subject(tool, given, facts={"before": facts})
    return BatchLine(f"r-{number}", subject, Money(800, "USD"))


def test_the_facts_that_the_policy_names_are_columns_or_the_same_for_all() -> None:
    lines = [
        with_facts(n, owner=f"Owner {n}", city="Larkhaven, OH", cost=690 + n)
        for n in range(3)
    ]
    for line in lines:
        line.subject.facts["before"]["cost_currency"] = "USD"
    table = build(*lines)
    assert [one.label for one in table.columns] == ["Customer", "Owner", "Cost"]
    assert [one.text for one in table.entries[1].cells] == [
        "C-1",
        "Owner 1",
        "6.91 USD",
    ]
    same = {label: cell.text for label, cell in table.constants}
    assert same["City"] == "Larkhaven, OH"
    assert "Gone" not in same


def test_a_fact_that_is_not_known_of_one_member_says_so() -> None:
    table = build(with_facts(1, owner="Owner 1"), with_facts(2))
    cells = {one.id: one.cells[1].text for one in table.entries}
    assert cells == {"r-1": "Owner 1", "r-2": "not given"}
