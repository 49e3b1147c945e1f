"""Rows of a command's output."""

from __future__ import annotations

import json

from policies.management import tables

ROWS = [
    {"user": "rita", "may_sign_in": True, "queues": ["mail", "money"], "ceiling": None},
    {"user": "bo", "may_sign_in": False, "queues": [], "ceiling": "5.00 USD"},
]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert list(tables.format_table(ROWS)) == [
        "user  may sign in  queues       ceiling",
        "rita  yes          mail, money  -",
        "bo    no           -            5.00 USD",
    ]


def test_no_rows_are_no_lines() -> None:
    assert list(tables.format_table([])) == []


def test_json_is_ascii_without_a_control_character() -> None:
    text = tables.format_json({"name": "\x1b[31m\u202e\x7f\u00e9"})
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == {"name": "\x1b[31m\u202e\x7f\u00e9"}
