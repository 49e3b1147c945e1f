from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from desk.log import search


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Refund 75.00 USD", ["refund", "75.00", "75", "usd"]),
        ("449.50", ["449.50"]),
        ("C-1017", ["c-1017", "c", "1017"]),
        ("process_refund", ["process", "refund"]),
        ("order_78291 1,262.00", ["order", "78291", "1262.00", "1262"]),
        ("\uff32EF ß", ["ref", "ss"]),
        ("…  --", []),
        ("x" * 65, []),
    ],
)
def test_a_text_is_found_by_its_words(text: str, found: list[str]) -> None:
    assert search.list_search_words([text]) == found


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("refund 75", "'refund':* & '75'"),
        ("C-1017", "'c-1017'"),
        ("o'brien", "'o''brien'"),
        ("us", "'us'"),
        ("&|!():*", ""),
    ],
)
def test_letters_are_found_by_their_beginning_and_figures_whole(
    typed: str, asked: str
) -> None:
    assert search.build_search_query(typed) == asked


@pytest.mark.django_db
@given(st.text(max_size=80).filter(lambda text: "\0" not in text))
def test_whatever_is_typed_is_a_query(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::tsquery", [search.build_search_query(text)])
        cursor.execute(
            "SELECT array_to_tsvector(%s::text[]) @@ %s::tsquery",
            [search.list_search_words([text]), search.build_search_query(text)],
        )
        (found,) = cursor.fetchone()
    assert found or not search.build_search_query(text)
