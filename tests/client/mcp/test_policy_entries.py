"""The entries that `import` prints, checked by the gate itself."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from counterseal_client.mcp.policy_entries import (
    build_entry,
    describe_server,
    parse_names,
    read_hints,
)
from counterseal_client.mcp.tool_list import ToolNames
from policies import active, versions
from policies.documents import loading
from tests import factories
from tests.client.mcp.conftest import POLICY

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "send_noteArguments",
    "required": ["to"],
    "properties": {
        "to": {"type": "string"},
        "text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
}


WEIRD = {"type": "object", "properties": {"a b": {"type": "string"}, "{x}": {}}}


def tool(name: str = "send_note", **parts: Any) -> dict[str, Any]:
    return {"name": name, "description": "A note.", "inputSchema": SCHEMA, **parts}


def hinted(**hints: bool) -> dict[str, Any]:
    return tool(annotations=hints)


def read_entry(one: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(build_entry("send_note", one))
    entry: dict[str, Any] = found["send_note"]
    return entry


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("one", "tier"),
    [
        (tool(), "approve"),
        (hinted(readOnlyHint=True), "approve"),
        (hinted(readOnlyHint=True, idempotentHint=True), "approve"),
        (hinted(destructiveHint=False, openWorldHint=False), "approve"),
        (hinted(destructiveHint=True), "escalate"),
        (hinted(readOnlyHint=True, destructiveHint=True), "escalate"),
        (tool(inputSchema={"type": "object"}), "approve"),
        (tool(inputSchema={**WEIRD, "required": ["a b", "{x}"]}), "approve"),
        (tool(inputSchema={"type": "object", "properties": {}}), "approve"),
        ({"name": "send_note"}, "approve"),
    ],
)
def test_a_person_must_approve_whatever_the_server_says_of_itself(
    one: dict[str, Any], tier: str
) -> None:
    entries = describe_server([one], ToolNames(), queue="notes").entries
    people = factories.cast()
    draft = versions.save_draft(
        text_or_mapping={**POLICY, **yaml.safe_load(entries)}, author=people["adam"]
    )
    assert draft.status == "draft"
    assert active.load_document(draft).tools["send_note"].base == tier


def test_a_hint_that_makes_it_harmless_is_a_comment() -> None:
    text = build_entry("send_note", hinted(readOnlyHint=True, idempotentHint=True))
    assert "#   risk: low" in text
    assert "execution_class: keyed" in text
    entry = read_entry(hinted(readOnlyHint=True, idempotentHint=True))
    assert (entry["risk"], entry["execution_class"]) == ("high", "opaque")
    assert "#   risk: low" not in build_entry("send_note", tool())


def test_only_true_and_false_are_hints() -> None:
    annotations = {"readOnlyHint": "yes", "destructiveHint": True, "other": True}
    assert read_hints(tool(annotations=annotations)) == {"destructiveHint": True}
    assert read_hints(tool(annotations=["readOnlyHint"])) == {}


def test_the_texts_of_a_server_are_inert() -> None:
    evil = 'x\x1b[2J"\n  risk: low\nnext: {a: 1} # \u202e\ud800'
    one = tool(title=evil, description=evil * 40)
    text = build_entry("send_note", one)
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    entry = read_entry(one)
    assert (entry["risk"], list(yaml.safe_load(text))) == ("high", ["send_note"])
    assert len(entry["description"]) <= 300


def test_a_tool_that_the_gate_cannot_take_is_left_out_with_the_reason() -> None:
    tools = [tool("send\x1b[2J"), tool(), tool("1st")]
    found = describe_server(tools, ToolNames(), queue="notes")
    assert found.count == 1
    assert list(yaml.safe_load(found.entries)["tools"]) == ["send_note"]
    assert '# "send\\u001b[2J" is left out' in found.entries
    assert "--map TOOL=NAME" in found.entries
    assert "1st" not in found.fingerprints


def test_a_prefix_and_single_names() -> None:
    names = parse_names("crm.", ["send_note=send_email"])
    found = describe_server([tool(), tool("look")], names, queue="mail")
    entries = yaml.safe_load(found.entries)["tools"]
    assert list(entries) == ["send_email", "crm.look"]
    assert entries["crm.look"]["queue"] == "mail"
    assert "send_note" in found.fingerprints


@pytest.mark.parametrize(
    ("prefix", "pairs", "said"),
    [
        ("", ["send"], "TOOL=NAME"),
        ("", ["=x"], "TOOL=NAME"),
        ("", ["a=x", "b=x"], "two tools have one name"),
        ("1.", [], "--prefix"),
    ],
)
def test_names_that_are_none(prefix: str, pairs: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_names(prefix, pairs)


DRAFT_7 = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "https://tools.example/send.json",
    "type": "object",
    "definitions": {
        "Person": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "boss": {"$ref": "#/definitions/Person"},
            },
        }
    },
    "properties": {
        "to": {"$ref": "#/definitions/Person"},
        "definitions": {"type": "string"},
        "cc": {"$ref": "https://tools.example/send.json#/definitions/Person"},
    },
    "dependencies": {"cc": ["to"], "to": {"required": ["cc"]}},
}
DIALECTS: list[tuple[str, Any, dict[str, Any], list[Any], list[Any]]] = [
    # what it is, the server's schema, the policy's, calls that pass, calls that do not
    ("nothing", None, {"type": "object"}, [{}], []),
    ("an empty schema", {}, {"type": "object"}, [{}], [{"a": 1}]),
    (
        "definitions",
        {"$ref": "#/definitions/A", "definitions": {"A": {"required": ["x"]}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"required": ["x"]}}, "type": "object"},
        [],
        [{}],
    ),
    (
        "nullable",
        {"properties": {"a": {"type": "string", "nullable": True, "enum": ["x"]}}},
        {
            "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}},
            "type": "object",
        },
        [{"a": None}, {"a": "x"}],
        [{"a": "y"}, {"a": 1}],
    ),
    (
        "nullable beside a reference",
        {
            "properties": {"a": {"$ref": "#/$defs/N", "nullable": True, "title": "A"}},
            "$defs": {"N": {"type": "number"}},
        },
        {
            "properties": {
                "a": {"title": "A", "anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}
            },
            "$defs": {"N": {"type": "number"}},
            "type": "object",
        },
        [{"a": None}, {"a": 2}],
        [{"a": "x"}],
    ),
    (
        "exclusive edges of draft 4",
        {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True, "maximum": 9}}},
        {"properties": {"a": {"maximum": 9, "exclusiveMinimum": 1}}, "type": "object"},
        [{"a": 2}, {"a": 9}],
        [{"a": 1}, {"a": 10}],
    ),
    (
        "a list of items",
        {
            "properties": {
                "a": {"items": [{"type": "string"}], "additionalItems": False}
            }
        },
        {
            "properties": {"a": {"prefixItems": [{"type": "string"}], "items": False}},
            "type": "object",
        },
        [{"a": ["x"]}],
        [{"a": [1]}, {"a": ["x", "y"]}],
    ),
    (
        "dependencies",
        {
            "properties": {"a": {}, "b": {}, "c": {}},
            "dependencies": {"a": ["b"], "b": {"required": ["c"]}},
        },
        {
            "properties": {"a": {}, "b": {}, "c": {}},
            "dependentRequired": {"a": ["b"]},
            "dependentSchemas": {"b": {"required": ["c"]}},
            "type": "object",
        },
        [{"a": 1, "b": 1, "c": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    (
        "required of draft 3, and a type of any kind",
        {"properties": {"a": {"required": True, "type": "any"}}},
        {"properties": {"a": {}}, "required": ["a"], "type": "object"},
        [{"a": None}],
        [{}],
    ),
    (
        "required and not declared",
        {"type": ["object", "null"], "properties": {}, "required": ["a", "a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        [{"a": 1}],
        [{}],
    ),
    (
        "an example",
        {"properties": {"a": {"type": "string", "example": "x", "x-y": 1}}},
        {
            "properties": {"a": {"type": "string", "x-y": 1, "examples": ["x"]}},
            "type": "object",
        },
        [{"a": "z"}],
        [{"a": 1}],
    ),
]
PATTERNS = [
    # the server's pattern, the policy's ("" if it is dropped), texts that match
    (r"^\p{L}+$", r"^\p{L}+$", "é"),
    (r"^https\:\/\/", r"^https\:\/\/", "https://x"),
    (r"^[\w-.]+$", r"^[\w\-.]+$", "a-b.c"),
    (r"^[[]$", r"^[\[]$", "["),
    (r"^[^]$", r"^[\s\S]$", "\n"),
    (r"^a{b}$", r"^a\{b\}$", "a{b}"),
    (r"^[\b]$", r"^[\x08]$", "\b"),
    (r"^(?=.*\d).{8,}$", "", "anything"),
    (r"^(?!admin)\w+$", "", "admin"),
    (r"(?<=a)b", "", "anything"),
    (r"(a)\1", "", "anything"),
    (r"(?<n>a)\k<n>", "", "anything"),
    (r"(?>a+)b", "", "anything"),
    (r"^a++$", "", "anything"),
    (r"^\Z", "", "anything"),
    (r"(", "", "anything"),
    (r"[z-a]", "", "anything"),
    (r"a{,3}", "", "anything"),
    (r"^\p{L}{1,100000}$", "", "anything"),
    (r"^(.{1,1000}){1,1000}$", "", "anything"),
    (r"\p{Klingon}", "", "anything"),
]
REFUSED = [
    # a schema that the gate cannot take, and what the comment says
    ({"type": "string"}, "its arguments are no object"),
    ([], "its inputSchema is no object"),
    ({"properties": {"a": "string"}}, "properties.a is no schema"),
    ({"properties": {"a": {"type": "file"}}}, "properties.a.type is no type of JSON"),
    ({"properties": {"a": {"$ref": "https://x.example/y"}}}, "refers to"),
    ({"properties": {"a": {"$ref": "#/definitions/Nobody"}}}, "refers to"),
    ({"properties": {"a": {"minLength": "3"}}}, "properties.a.minLength is no count"),
    ({"properties": {"a": {"enum": "x"}}}, "properties.a.enum is no list of values"),
    ({"properties": {"a": {"oneOf": []}}}, "properties.a.oneOf is no list of schemas"),
    ({"patternProperties": {"(?=a)": {}}}, "patternProperties: of a pattern"),
    ({"definitions": {"A": {}}, "$defs": {"A": {"type": "null"}}}, "of one name"),
]


def load_imported(tools: list[dict[str, Any]]) -> Any:
    """What the gate's own loader makes of the printed entries."""
    entries = describe_server(tools, ToolNames(), queue="notes").entries
    return loading.parse_document({**POLICY, **yaml.safe_load(entries)}).tools


def test_a_schema_of_another_dialect_is_rewritten_and_means_the_same() -> None:
    names = [f"tool_{number}" for number in range(len(DIALECTS))]
    pairs = zip(names, DIALECTS, strict=True)
    found = load_imported([tool(name, inputSchema=one[1]) for name, one in pairs])
    for name, (what, _, schema, passing, failing) in zip(names, DIALECTS, strict=True):
        assert found[name].arguments == schema, what
        assert all(found[name].validator.is_valid(args) for args in passing), what
        assert not any(found[name].validator.is_valid(args) for args in failing), what


def test_definitions_of_draft_7_move_with_their_references() -> None:
    validator = load_imported([tool(inputSchema=DRAFT_7)])["send_note"].validator
    person = {"name": "a", "boss": {"name": "b"}}
    assert validator.is_valid({"to": person, "cc": person, "definitions": "x"})
    assert not validator.is_valid({"to": person}), "cc is required beside it"
    assert not validator.is_valid({"to": {"boss": {"name": 1}}, "cc": person})


@pytest.mark.parametrize(("pattern", "taken", "text"), PATTERNS)
def test_a_pattern_is_taken_as_it_is_or_rewritten_or_named_in_a_comment(
    pattern: str, taken: str, text: str
) -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    one = tool(inputSchema=schema)
    definition = load_imported([one])["send_note"]
    assert definition.arguments["properties"]["a"].get("pattern", "") == taken
    assert definition.validator.is_valid({"a": text})
    comment = "# properties.a.pattern is left out: "
    assert (comment in build_entry("send_note", one)) == (not taken)


@pytest.mark.parametrize(("schema", "said"), REFUSED)
def test_a_schema_that_the_gate_cannot_take_leaves_out_its_tool_only(
    schema: Any, said: str
) -> None:
    tools = [tool("bad", inputSchema=schema), tool()]
    found = describe_server(tools, ToolNames(), queue="notes")
    assert found.count == 1
    assert '# "bad" is left out: ' in found.entries
    assert said in found.entries
    assert "bad" not in found.fingerprints
    assert list(load_imported(tools)) == ["send_note"]


def test_what_only_describes_is_left_out_with_a_comment() -> None:
    odd = {"description": 3, "discriminator": {"propertyName": "x"}, "a\nb": 1}
    one = tool(inputSchema={"type": "object", "properties": {"a": odd}})
    text = build_entry("send_note", one)
    assert "# properties.a.description is left out" in text
    assert "# properties.a.discriminator is left out" in text
    assert "# properties.a.a\\x0ab is left out" in text
    assert load_imported([one])["send_note"].arguments["properties"] == {"a": {}}


def test_names_that_come_twice_and_sentences_that_are_too_long_load_as_well() -> None:
    many: dict[str, Any] = {f"argument_number_{number}": {} for number in range(60)}
    long = tool("long", inputSchema={"properties": many, "required": list(many)})
    tools = [tool(), tool(), long]
    text = describe_server(tools, ToolNames(), queue="notes").entries
    assert "An earlier tool has the name send_note" in text
    assert load_imported(tools)["long"].effect == ""
    assert yaml.safe_load(describe_server([], ToolNames(), queue="n").entries) == {
        "tools": {}
    }


def test_values_that_a_policy_cannot_hold_do_not_refuse_the_whole_policy() -> None:
    properties = {
        "a": {"type": "integer", "maximum": 2**63 - 1, "default": 2**64},
        "b": {"type": "string", "description": "${HOME}", "pattern": "^${HOME}$"},
        "c": {"type": "string", "title": "\ud800", "examples": ["${X}"]},
    }
    odd = tool("odd", title="${HOME} \ud800", description="Costs ${PRICE}.")
    odd["inputSchema"] = {"properties": properties}
    bad = [
        tool("bad_value", inputSchema={"properties": {"a": {"enum": ["${X}"]}}}),
        tool("bad_name", inputSchema={"properties": {"\ud800": {}}}),
        tool("bad_constant", inputSchema={"properties": {"a": {"const": 2**60}}}),
    ]
    found = load_imported([odd, *bad])
    assert list(found) == ["odd"]
    assert found["odd"].description == "Costs $ {PRICE}."
    assert found["odd"].arguments["properties"]["a"] == {"type": "integer"}
    assert "# properties.a.maximum is left out" in build_entry("odd", odd)
