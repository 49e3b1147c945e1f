"""Whatever a schema says and an agent proposes: a form that nobody touched sends
exactly the proposal, and a change changes one thing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from desk import argument_form
from desk.argument_form import sheet
from desk.argument_form.fields import ChoiceField, LineField, LockedField, MomentField
from desk.argument_form.nested import ListField
from journal import canonical
from tests.desk.argument_form.browsers import fill, tool_of

ABSENT = object()
KEYS = st.text(max_size=4) | st.sampled_from(
    ["a", "b", "a.b", "a:is", "~", "to:rows", "0", "n0", "__proto__", "'\"<>&"]
)
BIG = canonical.MAX_INTEGER
TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        *(
            "",
            " ",
            " a ",
            "a\r\nb",
            "a\nb",
            "\n",
            "\na",
            "\t",
            "0",
            "no",
            "yes",
            "#null",
        ),
        *("null", "given", "a@x.example", " a@x.example", "\u00e9@\u00e9.example"),
        *("2026-02-29", "2024-02-29", "0000-01-01", "10000-01-01", "https://x/ y"),
        *("2026-11-20T14:00:00Z", "2026-11-20T14:00:30+02:00", "2026-11-20T14:00:00z"),
        *("2026-11-20T14:00:60Z", "2026-11-20T14:00:00.5Z", "\u202eabc", "\u3164"),
    ]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [1e22, 1e21, 0.1, -0.0, 5e-324, 1.0, 1e16, 123456789.25]
)
WHOLE = st.integers(-BIG, BIG) | st.sampled_from([BIG, -BIG, 0])
SCALARS = st.none() | st.booleans() | WHOLE | NUMBERS | TEXTS
FORMATS = st.sampled_from(["email", "date", "date-time", "uri", "uuid", "time"])


@st.composite
def leaves(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A subschema of something single, and a value that it might hold."""
    item = draw(SCALARS)
    items = draw(st.lists(SCALARS, max_size=4))
    branches = [{"type": "string"}, {"type": "integer"}, {"type": "null"}]
    number = draw(st.sampled_from(["number", ["integer", "number"]]))
    made: list[tuple[dict[str, Any], Any]] = [
        ({"type": "string", "maxLength": draw(st.integers(0, 200))}, draw(TEXTS)),
        ({"type": "string", "format": draw(FORMATS)}, draw(TEXTS)),
        ({"enum": [item, *items]}, draw(st.sampled_from([item, *items]) | SCALARS)),
        ({"const": item}, item),
        ({"type": "integer", "minimum": 0}, draw(WHOLE)),
        ({"type": number}, draw(NUMBERS | WHOLE)),
        ({"type": "boolean"}, draw(st.booleans())),
        ({}, item),
        ({"oneOf": branches}, item),
        ({"anyOf": branches}, item),
    ]
    found: tuple[dict[str, Any], Any] = draw(st.sampled_from(made))
    return found


@st.composite
def places_of(draw: st.DrawFn, depth: int = 0) -> tuple[dict[str, Any], Any]:
    """Any subschema with a value, nested up to three deep."""
    kind = draw(st.sampled_from(["leaf"] * (2 + depth) + ["null", "list", "object"]))
    if kind == "null":
        schema, value = draw(leaves())
        if isinstance(schema.get("type"), str):
            schema = {**schema, "type": [schema["type"], "null"]}
        return schema, draw(st.sampled_from([value, None]))
    if kind == "leaf" or depth > 2:
        return draw(leaves())
    if kind == "object":
        return draw(objects(depth + 1))
    schema, value = draw(places_of(depth + 1))
    values = draw(st.lists(st.just(value) | SCALARS, max_size=4))
    return {"type": "array", "items": schema}, values


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object's schema with a value; some members are absent, some undeclared."""
    members = draw(st.dictionaries(KEYS, places_of(depth), max_size=4))
    there = {key for key in members if draw(st.booleans())}
    required = [key for key in there if draw(st.booleans())]
    value = {key: members[key][1] for key in there}
    value |= draw(
        st.dictionaries(st.sampled_from(["extra", "more"]), SCALARS, max_size=1)
    )
    properties = {key: schema for key, (schema, _) in members.items()}
    return {"type": "object", "properties": properties, "required": required}, value


def exactly(value: Any) -> str:
    """JSON that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=150)
@given(made=objects())
def test_an_untouched_form_sends_exactly_the_proposal(made: Any) -> None:
    schema, args = made
    tool = tool_of(schema)
    form = argument_form.build_form(tool, args)
    assert form.changes == 0
    sent = fill(form)
    read, wrong = argument_form.parse_edits(tool, args, sent)
    assert (exactly(read), wrong) == (exactly(args), [])
    again = argument_form.build_form(tool, args, sent=sent)
    assert again.changes == 0
    assert fill(again) == sent


@settings(max_examples=80)
@given(made=objects(), data=st.data())
def test_a_change_changes_one_place(made: Any, data: st.DataObject) -> None:
    schema, args = made
    tool = tool_of(schema)
    form = argument_form.build_form(tool, args)
    lines = [
        node
        for node in form.walk()
        if type(node) is LineField
        and node.at.spec.kind == "string"
        and node.text != "other"
    ]
    if not lines:
        return
    node = data.draw(st.sampled_from(lines))
    sent = fill(form) | {node.name: "other"}
    read, wrong = argument_form.parse_edits(tool, args, sent)
    assert wrong == []
    assert argument_form.build_form(tool, args, sent=sent).changes == 1
    back = fill(argument_form.build_form(tool, read))
    assert argument_form.parse_edits(tool, read, back) == (read, [])
    was = _put(read, node, args)
    assert exactly(was) == exactly(args)


@settings(max_examples=80)
@given(made=objects(), data=st.data())
def test_anything_may_be_sent(made: Any, data: st.DataObject) -> None:
    schema, args = made
    tool = tool_of(schema)
    nodes = list(argument_form.build_form(tool, args).walk())
    names = [
        node.name + end
        for node in nodes
        for end in ("", sheet.STATE, sheet.ROWS, sheet.ZONE)
    ]
    texts = TEXTS | st.sampled_from(
        ["absent", "given", "null", "0 n0", "n0 n1 n0", "1"]
    )
    some = st.sampled_from(names) if names else st.just("arg.x")
    sent = data.draw(st.dictionaries(some, texts, max_size=8))
    form = argument_form.build_form(tool, args, sent=sent)
    read, wrong = form.read()
    json.dumps(read)
    kept = {node.name: node for node in form.walk()}
    for node in kept.values():
        if isinstance(node, LineField | ChoiceField) and not isinstance(
            node, MomentField
        ):
            typed = sent.get(node.name)
            assert typed is None or node.text == typed.replace("\r\n", "\n")
        if isinstance(node, LockedField):
            assert node.read(wrong) is node.at.was or node.at.new
        if isinstance(node, ListField):
            assert len(set(node.keys)) == len(node.keys)


def _put(target: Any, node: LineField, args: Any) -> Any:
    """The edited arguments with the proposed value put back where the node is."""
    result = json.loads(json.dumps(target))
    found, was = result, args
    *way, last = _steps(node)
    for key in way:
        found, was = found[key], was.get(key, {}) if isinstance(was, dict) else was[key]
    if node.at.was is not _missing(node):
        found[last] = node.at.was
    else:
        found.pop(last)
    return result


def _missing(node: LineField) -> Any:
    return node.at.was if node.was_state == "absent" else ABSENT


def _steps(node: LineField) -> list[Any]:
    found: list[Any] = []
    names = node.name.split(".")[1:]
    plain = [n.replace("~2", ":").replace("~1", ".").replace("~0", "~") for n in names]
    path = list(node.at.path)
    for name in plain:
        if path and name == path[0]:
            found.append(path.pop(0))
        else:
            found.append(int(name))
    return found
