"""Attention checks come from decoded facts alone, and stay the same for one reader."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.attention_checks import distractors, questions
from reviews.attention_checks.distractors import QuestionDraft
from reviews.attention_checks.questions import NONE_OF_THESE, AttentionQuestion
from reviews.presenters import present_effect
from reviews.presenters.shapes import Presentation, collect_texts
from tests.reviews.definitions import tool
from tests.reviews.presenters import kinds

ARGS = {"order_id": "78291", "amount": "899.00", "currency": "USD", "reason": "gone"}
BEFORE = {"order_id": "78291", "amount": "240.00", "owner": "C-7", "state": "open"}
SCHEMA = tool().arguments
REASONS = ["gone", "broken", "too_late", "wrong_colour"]
seeds = st.binary(min_size=32, max_size=32)


def shown(**args: str) -> Presentation:
    return present_effect(tool(), {**ARGS, **args}, before=BEFORE)


def asked(seed: bytes, **args: str) -> AttentionQuestion:
    found = questions.build_question(shown(**args), seed, SCHEMA)
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


def test_wrong_answers_are_what_the_schema_lists() -> None:
    schema = tool().model_dump(by_alias=True)["schema"]
    schema["properties"]["reason"] = {"type": "string", "enum": REASONS}
    listing = tool(schema=schema)
    page = present_effect(listing, ARGS, before=BEFORE)
    found = questions.build_field_drafts(page, listing.arguments)
    of_reason = [one for one in found if one.right == "gone"]
    said = {one.replace("_", " ") for one in REASONS[1:]}
    assert [set(one.wrong) for one in of_reason] == [said]


def test_half_a_word_is_no_wrong_answer() -> None:
    assert set(distractors.build_near_misses("not_received")) == {
        "received",
        "partly_received",
    }
    assert set(distractors.build_near_misses("too_late")) == {"not_too_late"}
    assert "refund_limit" in distractors.build_near_misses("refund_limit_check")


@given(seeds)
def test_what_is_hidden_is_not_asked_about(seed: bytes) -> None:
    hidden = present_effect(tool(sensitive=["amount"]), ARGS, before=BEFORE)
    found = questions.build_question(hidden, seed, SCHEMA)
    assert found is not None
    assert not {"899.00", "240.00"} & set(found.options)


def test_how_often_follows_the_policy() -> None:
    due = [questions.is_check_due(seed_of(number), 4) for number in range(2000)]
    assert 400 < sum(due) < 600
    assert not any(questions.is_check_due(seed_of(number), 0) for number in range(50))
    assert all(questions.is_check_due(seed_of(number), 1) for number in range(50))


# Of each kind of tool a fact of its own view, and the answer that is right.
OF_VIEWS = [
    ("run_command", "program", "sudo"),
    ("run_command", "steps", "2"),
    ("run_command", "view", "build-02"),
    ("run_program", "program", "git"),
    ("write_file", "file", "app/settings.toml"),
    ("write_file", "added", "1"),
    ("apply_patch", "file", "checkout/refunds.py"),
    ("call_api", "view", "api.partner.example"),
    ("call_api", "view", "POST"),
    ("give_access", "view", "storage.admin"),
    ("give_access", "view", "riley"),
    ("deploy", "view", "production"),
    ("publish_page", "view", "public"),
    ("set_flag", "view", "refund_limit_check"),
    ("invite", "view", "sam@northgate.example"),
    ("run_sql", "view", "customers"),
]


def drafts(name: str) -> list[QuestionDraft]:
    """What could be asked of a tool's view."""
    found = questions.build_view_drafts(
        kinds.show(name), kinds.definition(name).arguments
    )
    return [one for one in found if len(one.wrong) >= 2]


@pytest.mark.parametrize(("name", "kind", "right"), OF_VIEWS)
def test_a_dedicated_view_is_asked_about(name: str, kind: str, right: str) -> None:
    found = {(one.id.partition(":")[0], one.right) for one in drafts(name)}
    assert (kind, right) in found


@pytest.mark.parametrize("name", kinds.EXAMPLES)
def test_some_seed_asks_of_the_view(name: str) -> None:
    shown, schema = kinds.show(name), kinds.definition(name).arguments
    ids = {one.id for one in drafts(name)}
    asked_of = {
        found.id
        for number in range(300)
        if (found := questions.build_question(shown, seed_of(number), schema))
    }
    assert ids <= asked_of


@pytest.mark.parametrize("name", kinds.EXAMPLES)
def test_the_right_answer_is_on_the_page_and_the_wrong_ones_are_wrong(
    name: str,
) -> None:
    shown, schema = kinds.show(name), kinds.definition(name).arguments
    said = set(collect_texts(shown))
    for one in [*drafts(name), *questions.build_field_drafts(shown, schema)]:
        assert one.right not in one.wrong
        assert len(set(one.wrong)) == len(one.wrong)
        assert one.right in said or one.right.isdigit()
        assert one.look.startswith(("What changes, ", "If it goes wrong"))


def test_one_of_a_list_is_never_a_wrong_answer_for_another_of_it() -> None:
    guests = ["sam@northgate.example", "dana@mail.example"]
    for one in drafts("invite"):
        if one.right in guests:
            assert not set(guests) & set(one.wrong)
            assert "1" not in "".join(part.text for part in one.wordings[0])


def test_what_also_runs_is_no_wrong_answer() -> None:
    programs = [one for one in drafts("run_command") if one.id.startswith("program")]
    assert {one.right for one in programs} == {"sudo", "rm"}
    for one in programs:
        assert not {"npm", "rm", "sudo"} & set(one.wrong)


def test_a_command_that_was_not_read_is_not_asked_about() -> None:
    shown = kinds.show("run_command", cmd="echo 'unfinished")
    found = {one.id.partition(":")[0] for one in questions.build_view_drafts(shown, {})}
    assert not found & {"program", "steps"}


def test_how_many_are_outside_is_asked_as_the_page_counts() -> None:
    shown = kinds.show("send_mail")
    found = {one.id: one for one in questions.build_field_drafts(shown, {})}
    assert found["outside"].right == "1"
    assert "1 recipient outside the company" in kinds.tags(shown)


@given(st.text(max_size=60))
def test_a_near_miss_of_any_text_is_no_error(text: str) -> None:
    for other in distractors.build_near_misses(text):
        assert isinstance(other, str)


def test_a_hidden_value_of_a_view_is_not_asked_about() -> None:
    shown = kinds.show("call_api")
    for one in drafts("call_api"):
        assert "sk-live" not in "".join([one.right, *one.wrong])
    assert any("Sends a credential" in tag for tag in kinds.tags(shown))
