"""Filters that nobody can answer are refused, whatever is written in their values."""

from __future__ import annotations

import pytest

from desk.scim.filters import OF_USERS, parse_filter
from journal.errors import InvalidInput


@pytest.mark.parametrize("value", [r"\q", r"\u12", r"\u0000", "a\x00", r"\ud800", "\\"])
def test_a_value_that_is_no_text_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="must compare by eq") as refused:
        parse_filter(f'userName eq "{value}"', OF_USERS)
    assert refused.value.facts == {"scim_type": "invalidFilter"}


def test_an_escaped_value_is_read() -> None:
    found = parse_filter(r'userName eq "\u00e9\"\\"', OF_USERS)
    assert found.children == [("username__iexact", 'é"\\')]
