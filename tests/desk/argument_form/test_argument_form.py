"""The edit form of arguments: what it shows, what it gives back, what it locks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.template.loader import render_to_string

from desk import argument_form
from desk.argument_form import fields, sheet, values
from desk.argument_form.schema import build_spec
from policies.documents import ToolDefinition
from tests.desk.argument_form.browsers import fill, tool_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "amount", "currency", "kind"],
    "properties": {
        "name": {"type": "string", "maxLength": 60},
        "body": {"type": "string", "maxLength": 4000},
        "amount": {"type": "string"},
        "currency": {"type": "string"},
        "kind": {"enum": ["full", "partial"]},
        "level": {"type": "integer"},
        "share": {"type": "number"},
        "urgent": {"type": "boolean"},
        "to": {"type": "array", "items": {"type": "string", "format": "email"}},
        "secret": {"type": "string"},
        "on": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "site": {"type": "string", "format": "uri"},
        "gone": {"type": ["string", "null"]},
        "place": {"$ref": "#/$defs/place", "description": "Where to"},
        "lines": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["sku", "count"],
                "properties": {
                    "sku": {"type": "string"},
                    "count": {"type": "integer", "minimum": 1},
                },
            },
        },
        "pay": {
            "oneOf": [
                {
                    "type": "object",
                    "required": ["by", "iban"],
                    "properties": {"by": {"const": "iban"}, "iban": {"type": "string"}},
                },
                {
                    "type": "object",
                    "required": ["by", "card"],
                    "properties": {"by": {"const": "card"}, "card": {"type": "string"}},
                },
            ]
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "both": {"anyOf": [{"minLength": 1}, {"type": "string"}]},
        "pair": {"prefixItems": [{"type": "string"}], "type": "array"},
        "open": {"type": "object", "additionalProperties": True},
        "always": {"const": "x"},
    },
    "$defs": {
        "place": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
        }
    },
}
ARGS: dict[str, Any] = {
    "name": "Dana",
    "amount": "899.00",
    "currency": "USD",
    "kind": "full",
    "level": 3,
    "to": ["a@x.example", "b@x.example"],
    "secret": "s3cr3t",
    "on": "2026-11-20",
    "at": "2026-11-20T14:00:00Z",
    "site": "https://x.example/",
    "gone": None,
    "place": {"city": "Reno"},
    "lines": [{"sku": "1", "count": 2}, {"sku": "2", "count": 1}],
    "pay": {"by": "iban", "iban": "DE02"},
    "either": 4,
    "both": "both",
    "pair": ["a"],
    "open": {"any": "thing"},
}


@pytest.fixture(scope="module")
def tool() -> ToolDefinition:
    return tool_of(
        SCHEMA,
        money=[{"amount": "amount", "currency": "currency"}],
        sensitive=["secret"],
    )


def form(tool: ToolDefinition, sent: Any = None, args: Any = None, errors: Any = ()):
    labels = {"name": "Customer"}
    args = args or ARGS
    return argument_form.build_form(tool, args, labels=labels, sent=sent, errors=errors)


def by_name(tool: ToolDefinition, **more: Any) -> dict[str, Any]:
    return {n.name.removeprefix("arg."): n for n in form(tool, **more).walk()}


def sent(tool: ToolDefinition, args: Any = None, **changes: str) -> dict[str, str]:
    """What a browser sends for the form as it was shown, some of it changed."""
    typed = {f"arg.{name}": text for name, text in changes.items()}
    return fill(form(tool, args=args)) | typed


def edited(tool: ToolDefinition, **changes: str) -> dict[str, Any]:
    args, wrong = argument_form.parse_edits(tool, ARGS, sent(tool, **changes))
    assert wrong == []
    return args


def test_every_argument_has_an_input_of_its_type(tool: ToolDefinition) -> None:
    found = form(tool).fields
    kinds = {node.name.removeprefix("arg."): node.kind for node in found}
    assert kinds == {
        "name": "line",
        "body": "line",
        "amount": "line",
        "currency": "locked",
        "kind": "choice",
        "level": "line",
        "share": "line",
        "urgent": "choice",
        "to": "rows",
        "secret": "locked",
        "on": "line",
        "at": "moment",
        "site": "line",
        "gone": "line",
        "place": "group",
        "lines": "rows",
        "pay": "group",
        "either": "line",
        "both": "locked",
        "pair": "locked",
        "open": "locked",
        "always": "locked",
    }


def test_native_types_and_keyboards(tool: ToolDefinition) -> None:
    found = by_name(tool)
    types = {n: found[n].input_type for n in ("name", "to.0", "on", "site", "level")}
    assert types == {
        "name": "text",
        "to.0": "email",
        "on": "date",
        "site": "url",
        "level": "text",
    }
    assert found["amount"].inputmode == "decimal"
    assert found["lines.0.count"].inputmode == "numeric"
    assert found["body"].multiline
    assert not found["name"].multiline
    assert (found["at"].local, found["at"].zone) == ("2026-11-20T14:00", "Z")


def test_inputs_are_filled_and_labelled(tool: ToolDefinition) -> None:
    found = by_name(tool)
    assert found["name"].label == "Customer"
    assert found["to.1"].label == "To 2"
    assert found["place"].hint == "Where to"
    assert [o.value for o in found["kind"].options if o.selected] == ["full"]
    assert not any(node.changed for node in found.values())
    assert form(tool).changes == 0


def test_what_cannot_be_edited_says_why(tool: ToolDefinition) -> None:
    found = by_name(tool)
    assert found["open"].why == found["pair"].why == fields.LOCKED
    assert found["pay.by"].why == fields.FIXED
    assert found["currency"].why == sheet.CURRENCY
    assert found["open"].value == '{"any": "thing"}'


def test_a_sensitive_value_never_reaches_the_form(tool: ToolDefinition) -> None:
    assert by_name(tool)["secret"].value == ""
    inside = tool_of(SCHEMA, sensitive=["place"], redact=["lines.sku"])
    found = {n.name: n for n in form(inside).walk()}
    assert found["arg.place"].value == ""
    assert found["arg.lines.0.sku"].why == sheet.HIDDEN


def test_the_branch_is_the_one_that_fits(tool: ToolDefinition) -> None:
    names = {name for name in by_name(tool) if name.startswith("pay.")}
    assert names == {"pay.by", "pay.iban"}


def test_what_is_sent_back_untouched_is_the_proposal(tool: ToolDefinition) -> None:
    assert argument_form.parse_edits(tool, ARGS, sent(tool)) == (ARGS, [])
    assert argument_form.parse_edits(tool, ARGS, {}) == (ARGS, [])


@pytest.mark.parametrize(
    "text",
    ["a\u202eb", "zero\u200bwidth", "nul\x00", "\u2028", "a\rb", "\u3164", "a\u00a0b"],
)
def test_what_a_form_would_lose_or_hide_is_locked(
    tool: ToolDefinition, text: str
) -> None:
    args = {**ARGS, "name": text}
    field = form(tool, args=args).fields[0]
    assert field.why == fields.INVISIBLE
    read, _ = argument_form.parse_edits(
        tool, args, sent(tool, args) | {"arg.name": "other"}
    )
    assert read["name"] == text


def test_changes_come_back_typed(tool: ToolDefinition) -> None:
    changes: dict[str, str] = {
        "level": "-4",
        "share": "0.5",
        "urgent": "yes",
        "kind": "partial",
        "to.0": "c@x.example",
        "place.city": "Elko",
        "place.floor": "2",
        "lines.1.count": "7",
        "on": "2026-12-01",
        "at": "2026-11-20T15:30",
        "at:zone": "+02:00",
        "either": "5",
        "gone": "here",
    }
    read = edited(tool, **changes)
    assert (read["level"], read["share"], read["urgent"]) == (-4, 0.5, True)
    assert (read["kind"], read["on"]) == ("partial", "2026-12-01")
    assert read["to"] == ["c@x.example", "b@x.example"]
    assert read["place"] == {"city": "Elko", "floor": 2}
    assert read["lines"][1] == {"sku": "2", "count": 7}
    assert (read["at"], read["either"]) == ("2026-11-20T15:30:00+02:00", 5)
    assert read["gone"] == "here"
    assert ARGS["place"] == {"city": "Reno"}


def test_left_out_empty_and_null_are_three_things(tool: ToolDefinition) -> None:
    assert "level" not in edited(tool, **{"level:is": "absent"})
    assert edited(tool, **{"body:is": "given"})["body"] == ""
    assert edited(tool, name="")["name"] == ""
    assert "gone" not in edited(tool, **{"gone:is": "absent"})
    assert edited(tool, **{"gone:is": "given"})["gone"] == ""
    assert "urgent" not in edited(tool)
    assert edited(tool, urgent="no")["urgent"] is False
    assert "place" not in edited(tool, **{"place:is": "absent"})
    assert edited(tool, **{"to:rows": ""})["to"] == []


def test_who_writes_into_what_was_left_out_means_it(tool: ToolDefinition) -> None:
    typed = sent(tool, body="hello", **{"body:is": "absent"})
    assert argument_form.parse_edits(tool, ARGS, typed)[0]["body"] == "hello"
    assert by_name(tool, sent=typed)["body"].state == "given"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ({"level": text}, "level")
        for text in ("many", "nan", "inf", "1e999", "1.2.3", "1,000", "2.5", "9" * 17)
    ]
    + [
        ({"share": "0,5"}, "share"),
        ({"share": "\u0663"}, "share"),
        ({"amount": "1,000.00"}, "amount"),
        ({"amount": "-5"}, "amount"),
        ({"kind": "other"}, "kind"),
        ({"urgent": "maybe"}, "urgent"),
        ({"to:rows": "0 n0"}, "to[1]"),
        ({"lines.0.count": "x"}, "lines[0].count"),
    ],
)
def test_what_is_no_value_of_its_type_is_said_at_its_path(
    tool: ToolDefinition, typed: dict[str, str], name: str
) -> None:
    _, wrong = argument_form.parse_edits(tool, ARGS, sent(tool, **typed))
    assert [error["path"] for error in wrong] == [f"args.{name}"]


def test_errors_stand_beside_the_deepest_input_and_the_rest_above(
    tool: ToolDefinition,
) -> None:
    errors = [
        {"path": "args.to[1]", "message": "not an address"},
        {"path": "args.lines[0].count", "message": "too small"},
        {"path": "args.place.zip", "message": "this argument is required"},
        {"path": "args", "message": "above what you may decide"},
    ]
    typed = sent(tool, **{"to.1": "x"})
    made = form(tool, sent=typed, errors=errors)
    found = {node.name: node for node in made.walk()}
    assert found["arg.to.1"].error == "not an address"
    assert found["arg.to.1"].text == "x"
    assert found["arg.to"].error == ""
    assert found["arg.lines.0.count"].error == "too small"
    assert found["arg.place"].error == "this argument is required"
    assert [error["message"] for error in made.above] == ["above what you may decide"]
    assert made.label_of("args.to[1]") == "To 2"


def test_errors_follow_a_row_that_was_moved(tool: ToolDefinition) -> None:
    errors = [{"path": "args.to[0]", "message": "not an address"}]
    made = form(tool, sent=sent(tool, **{"to:rows": "1 0"}), errors=errors)
    found = {node.name: node.error for node in made.walk()}
    assert (found["arg.to.1"], found["arg.to.0"]) == ("not an address", "")


class TestRows:
    def press(self, tool: ToolDefinition, typed: dict[str, str], *asked: str):
        for one in asked:
            typed = argument_form.apply_button(form(tool, sent=typed), typed, one)
        return argument_form.parse_edits(tool, ARGS, typed)

    def test_a_row_is_moved_with_what_was_typed_in_it(self, tool) -> None:
        typed = sent(tool, **{"lines.0.sku": "9"})
        read, wrong = self.press(tool, typed, "down:arg.lines.0")
        assert wrong == []
        assert read["lines"] == [{"sku": "2", "count": 1}, {"sku": "9", "count": 2}]
        read, _ = self.press(tool, typed, "down:arg.lines.0", "up:arg.lines.0")
        assert read["lines"][0]["sku"] == "9"

    def test_a_row_is_removed_and_another_added(self, tool) -> None:
        typed = sent(tool)
        read, _ = self.press(tool, typed, "remove:arg.to.0")
        assert read["to"] == ["b@x.example"]
        more = sent(tool, **{"to.n0": "new@x.example"})
        read, wrong = self.press(tool, more, "add:arg.to")
        assert read["to"] == [*ARGS["to"], "new@x.example"]
        assert wrong == []

    def test_a_new_row_of_several_inputs(self, tool) -> None:
        typed = sent(tool, **{"lines.n0.sku": "5", "lines.n0.count": "2"})
        read, _ = self.press(tool, typed, "add:arg.lines")
        assert read["lines"][2] == {"sku": "5", "count": 2}

    def test_a_removed_rows_name_is_not_used_again(self, tool) -> None:
        typed = sent(tool, **{"to.n0": "old@x.example"})
        asked = ["add:arg.to", "add:arg.to", "remove:arg.to.n0", "add:arg.to"]
        for one in asked:
            typed = argument_form.apply_button(form(tool, sent=typed), typed, one)
        assert typed["arg.to:rows"] == "0 1 n1 n2"

    def test_revert_brings_a_list_back(self, tool) -> None:
        typed = sent(tool, **{"to:rows": "1", "to.1": "x"})
        read, _ = self.press(tool, typed, "revert:arg.to")
        assert read == ARGS

    def test_it_counts_as_one_change(self, tool) -> None:
        typed = sent(tool, **{"to:rows": "1 0 n0", "to.n0": "c@x.example"})
        assert form(tool, sent=typed).changes == 1
        assert by_name(tool, sent=typed)["to"].was_said == "2 entries"

    def test_an_absent_list_comes_with_its_first_row(self, tool) -> None:
        args = {key: value for key, value in ARGS.items() if key != "to"}
        typed = sent(tool, args) | {"arg.to:rows": "n0", "arg.to.n0": "a@x.example"}
        read, wrong = argument_form.parse_edits(tool, args, typed)
        assert read == {**args, "to": ["a@x.example"]}
        assert wrong == []

    def test_the_schema_says_how_many(self, tool) -> None:
        typed = sent(tool, **{"lines:rows": "0 1 n0"})
        assert not by_name(tool, sent=typed)["lines"].may_add
        assert by_name(tool)["lines"].may_add

    @pytest.mark.parametrize(
        "asked",
        [
            "add:arg.name",
            "remove:arg.to.9",
            "up:arg.to.0",
            "down:arg.to.1",
            "down:",
            "burn:arg.to.0",
            "remove",
            "",
        ],
    )
    def test_what_no_button_asks_changes_nothing(self, tool, asked: str) -> None:
        assert self.press(tool, sent(tool), asked) == (ARGS, [])

    @pytest.mark.parametrize("rows", ["9", "0 0 1", "x", "n", "-1", "\u0661", "n99999"])
    def test_rows_nobody_has_are_no_rows(self, tool, rows: str) -> None:
        read, _ = argument_form.parse_edits(tool, ARGS, sent(tool, **{"to:rows": rows}))
        assert all(one in ARGS["to"] for one in read["to"])

    def test_a_long_list_is_locked(self, tool) -> None:
        args = {**ARGS, "to": [f"a{n}@x.example" for n in range(51)]}
        assert by_name(tool, args=args)["to"].why == fields.TOO_MANY


def test_names_of_inputs_are_unambiguous() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a.b": {"type": "string"},
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "c:is": {"type": "string"},
            "c": {"type": ["string", "null"]},
            "d~1": {"type": "string"},
            '"><x': {"type": "string"},
        },
    }
    args = {"a.b": "1", "a": {"b": "2"}, "c:is": "3", "c": "4", "d~1": "5", '"><x': "6"}
    tool = tool_of(schema)
    typed = fill(argument_form.build_form(tool, args))
    assert argument_form.parse_edits(tool, args, typed) == (args, [])
    made = list(argument_form.build_form(tool, args).walk())
    assert len({node.name for node in made}) == len({node.id for node in made}) == 7
    place = next(node for node in made if node.at.path == ('"><x',)).at.place
    assert sheet.is_within('args["\\"><x"]', place)


def minor_form(currency="USD", sent=None, amount=4200, **part):
    """The form of a payment in minor units."""
    schema = {
        "type": "object",
        "required": ["amount", "currency"],
        "properties": {
            "amount": {"type": "integer", "description": "In cents.", **part},
            "currency": {"type": "string"},
        },
    }
    pair = {"amount": "amount", "currency": "currency", "unit": "minor"}
    tool = tool_of(schema, money=[pair])
    args = {"amount": amount, "currency": currency}
    return argument_form.build_form(tool, args, sent=sent)


@pytest.mark.parametrize(
    ("currency", "shown", "typed", "sent"),
    [
        ("USD", "42.00", "43.5", 4350),
        ("JPY", "4200", "4350", 4350),
        ("KWD", "4.200", "4.35", 4350),
    ],
)
def test_a_person_changes_minor_units_in_the_units_of_their_currency(
    currency, shown, typed, sent
):
    form = minor_form(currency)
    assert form.fields[0].text == shown
    assert form.read() == ({"amount": 4200, "currency": currency}, [])
    assert f"In {currency}" in form.fields[0].hint
    assert "cents" not in form.fields[0].hint
    edited, wrong = minor_form(currency, {"arg.amount": typed}).read()
    assert (edited["amount"], wrong) == (sent, [])


@pytest.mark.parametrize("typed", ["42.001", "-1", "1e2", "600", "0.10", "4200000"])
def test_what_is_no_amount_in_these_bounds_is_refused_in_the_same_units(typed):
    form = minor_form(sent={"arg.amount": typed}, minimum=100, maximum=50000)
    edited, wrong = form.read()
    assert edited["amount"] == 4200
    assert wrong[0]["path"] == "args.amount"
    assert "minor" not in wrong[0]["message"]
    assert "From 1.00 USD to 500.00 USD" in form.fields[0].hint


def test_an_amount_whose_currency_is_in_the_form_says_that_it_is_in_minor_units():
    schema = {
        "type": "object",
        "properties": {
            "amount": {"type": "integer"},
            "currency": {"type": "string"},
            "fee": {"enum": [500, 1000]},
        },
    }
    declared = [
        {"path": "amount", "currency": "currency", "unit": "minor", "absent": "none"},
        {"path": "fee", "currency": "USD", "unit": "minor", "absent": "none"},
    ]
    tool = tool_of(schema, amounts=declared)
    args = {"amount": 4200, "currency": "USD", "fee": 500}
    amount, _, fee = argument_form.build_form(tool, args).fields
    assert isinstance(amount, fields.LineField)
    assert isinstance(fee, fields.ChoiceField)
    assert amount.text == "4200"
    assert "smallest unit" in amount.hint
    assert [one.label for one in fee.options][1:] == ["5.00 USD", "10.00 USD"]


def invoice(lines: int, fields_of_line: int) -> tuple[ToolDefinition, dict[str, Any]]:
    """A tool whose argument has a list of lines with optional texts, and a call."""
    names = [f"f{number}" for number in range(fields_of_line)]
    item = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
    }
    order = {
        "type": "object",
        "required": ["lines", "note"],
        "properties": {
            "lines": {"type": "array", "items": item},
            "note": {"type": "string"},
        },
    }
    schema = {"type": "object", "required": ["order"], "properties": {"order": order}}
    args = {"order": {"lines": [{"f0": "x"}] * lines, "note": "soon"}}
    return tool_of(schema), args


def test_a_list_with_more_inputs_than_can_be_sent_is_locked_before_anybody_types() -> (
    None
):
    tool, args = invoice(50, 14)
    made = form(tool, args=args)
    by_name = {node.name: node for node in made.walk()}
    assert by_name["arg.order.lines"].kind == "locked"
    assert "change it by the API" in by_name["arg.order.lines"].why
    assert by_name["arg.order.note"].kind == "line"
    edited, wrong = form(tool, {"arg.order.note": "later"}, args=args).read()
    assert (edited["order"]["lines"], wrong) == (args["order"]["lines"], [])
    assert edited["order"]["note"] == "later"


def test_lists_inside_lists_count_together_and_a_full_form_takes_no_more_rows() -> None:
    tool, args = invoice(32, 14)
    made = form(tool, args=args)
    rows = {node.name: node for node in made.walk()}["arg.order.lines"]
    total = sum(node.inputs for node in made.walk())
    assert rows.kind == "rows"
    assert 800 < total <= fields.MOST_INPUTS
    assert not rows.may_add
    fewer = form(tool, {"arg.order.lines:rows": "0 1"}, args=args)
    assert {node.name: node for node in fewer.walk()}["arg.order.lines"].may_add


def test_what_the_form_counts_is_what_its_page_sends() -> None:
    tool, args = invoice(3, 4)
    made = form(tool, args=args)
    html = "".join(
        render_to_string("desk/request/_field.html", {"node": node})
        for node in made.fields
    )
    sent = re.findall(r'<(?:input|select|textarea)[^>]*\sname="arg', html)
    assert len(sent) == sum(node.inputs for node in made.walk())


@pytest.mark.parametrize(
    ("schema", "text", "lines"),
    [
        ({}, "short", False),
        ({}, "x" * 81, True),
        ({}, "one\ntwo", True),
        ({"maxLength": 80}, "", False),
        ({"maxLength": 120}, "A title", False),
        ({"maxLength": 255}, "x" * 200, False),
        ({"maxLength": 255}, "one\ntwo", True),
        ({"maxLength": 4000}, "", True),
        ({"maxLength": 4000, "pattern": "^[A-Za-z0-9 .-]+$"}, "", False),
        ({"maxLength": 4000, "pattern": "^.*$"}, "x" * 100, False),
        ({"maxLength": 4000, "pattern": "^[^<>]*$"}, "", True),
        ({"maxLength": 4000, "pattern": r"^[\w\s]*$"}, "", True),
        ({"maxLength": 4000, "pattern": "[a-z]"}, "", True),
        ({"maxLength": 4000, "pattern": r"^[^\r\n]*@[^\r\n]*$"}, "", False),
        ({"maxLength": 4000, "format": "uri"}, "", False),
        ({"maxLength": 4000, "format": "uri"}, "a\nb", True),
    ],
)
def test_only_what_may_have_several_lines_is_a_text_area(schema, text, lines):
    spec = build_spec({"type": "string", **schema}, {}, text)
    assert values.is_multiline(spec, text) == lines
    assert values.is_wide(spec, text) == (
        lines or len(text) > 80 or schema.get("maxLength", 0) > 80
    )
