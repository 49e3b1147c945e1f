"""Strict intake and canonical form, against the public suites."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from journal import canonical
from journal.errors import InvalidJson, TooLarge
from tests.processor_time import costs_less

# Valid JSON that we refuse on purpose, by name; everything else valid is accepted.
REFUSED_ON_PURPOSE = {
    "y_object_duplicated_key": "appears twice",
    "y_object_duplicated_key_and_value": "appears twice",
    "y_object_escaped_null_in_key": "U+0000",
    "y_string_null_escape": "U+0000",
}
# Of the 35 files where RFC 8259 leaves the choice, the two that we take.
TAKEN_BY_CHOICE = {"i_number_double_huge_neg_exp", "i_number_real_underflow"}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-canonical.MAX_INTEGER, canonical.MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def vectors(shared: Any, name: str) -> list[dict[str, str]]:
    cases: list[dict[str, str]] = json.loads(shared(f"vectors/{name}").read_text())
    return cases


def outcome(raw: bytes) -> str:
    """`ok`, or the refusal's words; any other exception fails the test."""
    try:
        canonical.parse(raw)
    except (InvalidJson, TooLarge) as refusal:
        return refusal.detail
    return "ok"


def test_the_whole_json_test_suite(shared):
    files = vectors(shared, "json_test_suite.json")
    outcomes = {f["case"]: outcome(base64.b64decode(f["base64"])) for f in files}
    by_rule = {
        rule: [f["case"] for f in files if f["expect"] == rule]
        for rule in ("accept", "reject", "either")
    }
    assert [len(names) for names in by_rule.values()] == [95, 188, 35]
    assert [n for n in by_rule["reject"] if outcomes[n] == "ok"] == []
    refused = {n for n in by_rule["accept"] if outcomes[n] != "ok"}
    assert refused == set(REFUSED_ON_PURPOSE)
    for name, words in REFUSED_ON_PURPOSE.items():
        assert words in outcomes[name]
    assert {n for n in by_rule["either"] if outcomes[n] == "ok"} == TAKEN_BY_CHOICE


def test_what_is_accepted_has_one_canonical_form_that_is_accepted(shared):
    for file in vectors(shared, "json_test_suite.json"):
        raw = base64.b64decode(file["base64"])
        if outcome(raw) == "ok":
            once = canonical.encode(canonical.parse(raw))
            assert canonical.encode(canonical.parse(once)) == once


def test_the_rfc_8785_vectors(shared):
    cases = vectors(shared, "rfc8785_jcs.json")
    assert len(cases) == 6
    for case in cases:
        value = canonical.parse(case["input"].encode())
        assert canonical.encode(value) == case["canonical"].encode(), case["case"]


@given(json_values)
def test_canonical_bytes_are_a_fixed_point(value):
    written = canonical.encode(value)
    if outcome(written) == "ok":
        assert canonical.encode(canonical.parse(written)) == written
    else:
        assert "U+0000" in outcome(written) or "beyond" in outcome(written)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(raw):
    outcome(raw)


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        (b'{"args": {"a": 1, "b": {"a": 2, "a": 3}}}', "args.b.a", "twice"),
        (b'{"a": 1, "\\u0061": 2}', "a", "twice"),
        (b'{"x": [{"y": NaN}]}', "x[0].y", "not finite"),
        (b'{"x": 1e999}', "x", "not finite"),
        (b'{"total": 9007199254740992}', "total", "send it as a string"),
        (b'{"total": 1e20}', "total", "send it as a string"),
        (b"[" + b"9" * 5000 + b"]", "[0]", "send it as a string"),
        (b'{"a b\\n": "\\ud800"}', '["a b\\n"]', "unpaired surrogate"),
        (b'{"k": {"\\ud800": 1}}', "k", "unpaired surrogate"),
        ('{"k": "é\\u0000"}'.encode(), "k", "U+0000"),
        (b'"\\ud800"', "$", "unpaired surrogate"),
        (b'{"a": 1,\n  "b": }', "$", "line 2, column 8"),
        (b"\xef\xbb\xbf{}", "$", "byte order mark"),
        (b'{"a": "\xff"}', "$", "byte 7 is not UTF-8"),
        (b"", "$", "line 1, column 1"),
    ],
)
def test_a_refusal_says_where_and_why(raw, path, words):
    with pytest.raises(InvalidJson) as caught:
        canonical.parse(raw)
    (error,) = caught.value.errors
    assert error["path"] == path
    assert words in error["message"]
    assert words in caught.value.detail


def test_a_key_in_a_path_is_cut_and_escaped():
    raw = json.dumps({"\u202e" + "x" * 500: float("nan")}).encode()
    with pytest.raises(InvalidJson) as caught:
        canonical.parse(raw)
    path = caught.value.errors[0]["path"]
    assert path.isascii()
    assert len(path) < 80


def test_32_levels_are_taken_and_33_are_not():
    assert outcome(b"[" * 32 + b"]" * 32) == "ok"
    assert "deeper than 32" in outcome(b"[" * 33 + b"]" * 33)
    assert outcome(b'["' + b"[" * 99 + b'\\"{{{"]') == "ok"


def test_the_size_cap_counts_bytes():
    room = canonical.MAX_BYTES - 2
    assert outcome(b'"' + b"x" * room + b'"') == "ok"
    with pytest.raises(TooLarge):
        canonical.parse(b'"' + b"x" * room + b'" ')


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 1_000_000,
        b'["' + b'\\"' * 500_000,
        b"[" + b"1," * 500_000 + b"1]",
        b"\n" * 1_000_000 + b"x",
        b'{"a":' * 31 + b"[" + b"{}," * 300_000,
    ],
    ids=["deep", "open string", "wide", "lines", "many"],
)
def test_a_hostile_megabyte_is_answered_quickly(raw):
    assert costs_less(lambda: outcome(raw), seconds=5)  # quadratic would take hours


def test_floats_are_written_the_one_way():
    raw = b'{"b":1.0,"a":[1e30,-0.0,0.1,1E-7],"c":333333333.33333329}'
    written = canonical.encode(canonical.parse(raw))
    assert written == b'{"a":[1e+30,0,0.1,1e-7],"b":1,"c":333333333.3333333}'


def test_encode_refuses_what_json_cannot_say():
    for value in (2**53, float("inf"), "\ud800", {1: 2}, object()):
        with pytest.raises(ValueError, match=r"."):
            canonical.encode(value)


def test_a_digest_names_its_function():
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert canonical.digest(b"") == f"sha256:{empty}"


@given(json_values)
def test_every_value_has_the_form_of_rfc_8785(value):
    assert canonical.encode(value) == rfc8785.dumps(value)


def test_every_character_has_the_form_of_rfc_8785():
    text = "".join(chr(n) for n in range(0x11000) if not 0xD800 <= n < 0xE000)
    assert canonical.encode({"a": text}) == rfc8785.dumps({"a": text})
