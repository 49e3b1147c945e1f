"""Control questions come from decoded facts alone, and stay the same for one reader."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from reviews import micro_checks
from reviews.micro_checks import NONE_OF_THESE, Question
from reviews.presenters import present
from reviews.presenters.shapes import Presentation
from tests.reviews.definitions import tool

ARGS = {"order_id": "78291", "amount": "899.00", "currency": "USD", "reason": "gone"}
BEFORE = {"order_id": "78291", "amount": "240.00", "owner": "C-7", "state": "open"}
seeds = st.binary(min_size=32, max_size=32)


def shown(**args: str) -> Presentation:
    return present(tool(), {**ARGS, **args}, before=BEFORE)


def asked(seed: bytes, **args: str) -> Question:
    found = micro_checks.question(shown(**args), seed)
    assert found is not None
    return found


def seed_of(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


@given(seeds)
def test_it_offers_three_or_four_answers_and_none_of_these(seed: bytes) -> None:
    found = asked(seed)
    assert found.options[-1] == NONE_OF_THESE
    assert 3 <= len(found.options) - 1 <= 4
    assert len(set(found.options)) == len(found.options)
    assert 0 <= found.right < len(found.options)


@given(seeds)
def test_one_seed_asks_one_question(seed: bytes) -> None:
    assert asked(seed) == asked(seed)


def test_wording_kind_and_place_rotate() -> None:
    found = [asked(seed_of(number)) for number in range(200)]
    assert len({one.id for one in found}) >= 3
    assert len({one.parts for one in found}) >= 6
    assert {one.right for one in found} >= {0, 1, 2}
    assert any(one.options[one.right] == NONE_OF_THESE for one in found)


@given(seeds)
def test_the_right_answer_is_a_fact_of_the_page(seed: bytes) -> None:
    found, page = asked(seed), shown()
    facts = {change.after.text for change in page.changes if change.after}
    facts |= {change.label for change in page.changes}
    facts |= {row.cell.text for row in page.other} | {page.reversal.word}
    said = found.options[found.right]
    assert said in facts or said == NONE_OF_THESE
    assert found.look.startswith(("What changes", "If it goes wrong"))


@given(seeds)
def test_a_wrong_answer_is_wrong(seed: bytes) -> None:
    found = asked(seed)
    others = [n for n in range(len(found.options)) if n != found.right]
    assert not any(found.is_right(number) for number in others)
    if found.id.startswith("after:") and found.options[found.right] != NONE_OF_THESE:
        after = found.options[found.right]
        assert all(found.options[number] != after for number in others)


@given(seeds)
def test_what_is_hidden_is_not_asked_about(seed: bytes) -> None:
    hidden = present(tool(sensitive=["amount"]), ARGS, before=BEFORE)
    found = micro_checks.question(hidden, seed)
    assert found is not None
    assert not {"899.00", "240.00"} & set(found.options)


def test_how_often_follows_the_policy() -> None:
    due = [micro_checks.is_due(seed_of(number), 4) for number in range(2000)]
    assert 400 < sum(due) < 600
    assert not any(micro_checks.is_due(seed_of(number), 0) for number in range(50))
    assert all(micro_checks.is_due(seed_of(number), 1) for number in range(50))
