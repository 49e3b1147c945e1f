"""The table of keys is the only one, and no key means two things."""

from __future__ import annotations

import re

import pytest

from reviews.people import shortcuts
from reviews.people.shortcuts import SHORTCUTS
from tests.sources import templates

IN_TEMPLATES = re.compile(r'data-key="([^"{]+)"')


def test_the_usual_keys_do_not_collide() -> None:
    assert len({shortcut.key for shortcut in SHORTCUTS}) == len(SHORTCUTS)
    assert shortcuts.list_key_problems({}) == {}


def test_every_key_of_a_page_is_in_the_table() -> None:
    keys = {shortcut.key for shortcut in SHORTCUTS}
    for path, text in templates():
        for key in IN_TEMPLATES.findall(text):
            assert key in keys, (path, key)


def test_a_collision_names_both() -> None:
    (problem,) = shortcuts.list_key_problems({"a": "x"}).values()
    assert "Open Approve" in problem
    assert "Open Reject" in problem
    assert problem.startswith("X ")


def test_two_that_change_places_do_not_collide() -> None:
    assert shortcuts.list_key_problems({"a": "x", "x": "a"}) == {}


@pytest.mark.parametrize("key", ["g", "1", "9", " ", "", "ab", "\t", "\x7f"])
def test_some_keys_are_not_to_be_had(key: str) -> None:
    assert list(shortcuts.list_key_problems({"a": key})) == ["a"]


def test_only_what_differs_is_kept() -> None:
    mine = {"a": "y", "x": "x", "Enter": "q", "g q": "g w", "nothing": "b"}
    assert dict(shortcuts.list_changed_keys(mine)) == {"a": "y", "g q": "g w"}


def test_strokes_are_printed_as_a_keyboard_says_them() -> None:
    said = {
        one.shortcut.key: one.strokes for one in shortcuts.list_shortcuts({"a": "y"})
    }
    assert said["a"] == ["Y"]
    assert said["g q"] == ["G", "Q"]
    assert said["Control+Enter"] == ["Ctrl", "Enter"]
    assert said[" "] == ["Space"]
