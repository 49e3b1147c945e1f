"""A type is said wherever the schema leaves a doubt, and nowhere else."""

from __future__ import annotations

import pytest

from reviews.presenters.arguments import is_type_fixed
from reviews.presenters.shapes import Cell

NUMBER = {"type": "number"}
SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "sure": {"type": "boolean"},
        "either": {"type": ["number", "string"]},
        "one_of": {"anyOf": [NUMBER, {"type": "string"}]},
        "parts": {"type": "array", "items": NUMBER},
        "mixed": {"type": "array"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"quantity": NUMBER}},
        },
        "there": {"$ref": "#/$defs/count"},
        "open": {"type": "object", "additionalProperties": True},
    },
    "$defs": {"count": NUMBER},
}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("count", "number"),
        ("sure", "yes or no"),
        ("parts", "empty list"),
        ("parts[3]", "number"),
        ("lines[0].quantity", "number"),
        ("there", "number"),
        ("open", "empty group"),
    ],
)
def test_the_schema_says_it(path: str, kind: str) -> None:
    assert is_type_fixed(SCHEMA, path, kind)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("count", "nothing"),
        ("count", "empty text"),
        ("count", "sensitive"),
        ("sure", "number"),
        ("either", "number"),
        ("one_of", "number"),
        ("mixed[0]", "number"),
        ("open.count", "number"),
        ('open["a b"]', "number"),
        ('["count"]', "number"),
        ("nobody", "number"),
        ("count.more", "number"),
    ],
)
def test_it_leaves_a_doubt(path: str, kind: str) -> None:
    assert not is_type_fixed(SCHEMA, path, kind)


def test_a_cell_says_its_type_in_a_doubt_only() -> None:
    assert Cell("5").badge == ""
    assert Cell("5", "number").badge == "number"
    assert Cell("5", "number").settled.badge == ""
    assert Cell("none", "nothing").typed_text == "none (nothing)"
    assert Cell("", "empty text").typed_text == " (empty text)"
    assert Cell("", "empty text").settled.typed_text == "none"
    assert Cell("[#1]", "sensitive").settled.badge == "sensitive"
