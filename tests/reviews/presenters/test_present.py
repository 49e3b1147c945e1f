"""What a person is shown of an effect: all of it, in our words (I31)."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reviews.presenters import _PRESENTERS, collect_texts, inert, present_effect
from reviews.presenters.arguments import collect_leaves, humanise_name, sort_by_schema
from reviews.presenters.shapes import Cell, RiskIndicator, Tag, TextPart, ValuePart
from tests.reviews.definitions import TEXT, tool

ARGS = {"order_id": "78291", "amount": "899.00", "currency": "USD"}
KINDS = [*_PRESENTERS, "table", "nobody_wrote_it"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
names = st.sampled_from(
    ["to", "cc", "bcc", "from", "subject", "body", "amount", "currency", "address"]
) | st.text(max_size=8)
objects = st.dictionaries(names, values, max_size=6)


def plain(sentence):
    return "".join(part.text for part in sentence)


def row(rows, path):
    (found,) = [one for one in rows if one.path == path]
    return found


def tag_texts(shown):
    return [tag.text for tag in shown.tags]


def define(presenter, **parts):
    effect = parts.pop("effect", "Do {amount} with {order_id}")
    return tool(presenter=presenter, effect=effect, **parts)


# For each kind of tool; a hundred for all of them together.
some = settings(max_examples=30)


class TestNothingIsLeftOut:
    @pytest.mark.parametrize("kind", KINDS)
    @some
    @given(args=objects, before=st.none() | objects)
    def test_every_leaf_stands_in_a_row(self, kind, args, before):
        shown = present_effect(define(kind), args, before=before)
        rows = [*shown.unchanged, *shown.other]
        paths = {one.path for one in rows} | {one.path for one in shown.changes}
        assert {leaf.path for leaf in collect_leaves(args)} <= paths

    @pytest.mark.parametrize("kind", KINDS)
    @some
    @given(data=st.data(), args=objects, before=st.none() | objects)
    def test_another_leaf_gives_another_text(self, kind, data, args, before):
        places = list(spots(args))
        assume(places)
        place = data.draw(st.sampled_from(places))
        other = data.draw(scalars)
        changed = copy.deepcopy(args)
        assume(replace(changed, place, other))
        definition = define(kind)
        one = list(collect_texts(present_effect(definition, args, before=before)))
        assert one != list(
            collect_texts(present_effect(definition, changed, before=before))
        )

    @given(one=objects, other=objects)
    def test_different_arguments_never_read_the_same(self, one, other):
        assume(typed(one) != typed(other))
        definition = define("record")
        assert list(collect_texts(present_effect(definition, one))) != list(
            collect_texts(present_effect(definition, other))
        )

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_the_agent_may_put_in_a_value_never_raises(self, kind):
        for value in (
            "\ud83d",
            "\x00",
            "{amount}",
            "{",
            "x" * 100_000,
            "<a href='//['>",
        ):
            shown = present_effect(
                define(kind), {"amount": value, "to": [value], "body": value}
            )
            assert list(collect_texts(shown))


def spots(value: Any, place: tuple[Any, ...] = ()):
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from spots(part, (*place, key))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from spots(part, (*place, index))
    elif place:
        yield place


def replace(root, place, value):
    """False when that changes nothing."""
    *way, last = place
    for step in way:
        root = root[step]
    same = typed(root[last]) == typed(value)
    root[last] = value
    return not same


def typed(value):
    """Equality that tells 1 from True and 1.0 from 1."""
    if isinstance(value, dict):
        return ("object", sorted((key, typed(part)) for key, part in value.items()))
    if isinstance(value, list):
        return ("list", [typed(part) for part in value])
    return (type(value).__name__, repr(value))


class TestSentence:
    def test_arguments_are_untrusted_values_between_our_words(self):
        definition = define("record", effect="Label {order_id} as {label}.")
        shown = present_effect(definition, {"order_id": "7", "label": "x" * 500})
        assert shown.sentence == (
            TextPart("Label "),
            ValuePart("7"),
            TextPart(" as "),
            ValuePart("x" * 500),
            TextPart("."),
        )
        assert [part.value for part in shown.sentence] == [
            *(False, True, False, True, False)
        ]

    def test_a_value_cannot_bring_a_placeholder_of_its_own(self):
        definition = define("record", effect="Label {order_id} as {label}")
        shown = present_effect(definition, {"order_id": "{label}", "label": "b"})
        assert plain(shown.sentence) == "Label {label} as b"

    def test_missing_and_empty_arguments_are_said(self):
        definition = define("record", effect="Send {a}, {b}, {c}, {d}")
        shown = present_effect(definition, {"a": "", "b": [], "c": None})
        said = "Send (empty), no entries, none, (not given)"
        assert plain(shown.sentence) == said

    def test_a_long_list_is_counted_and_an_object_joined(self):
        definition = define("record", effect="Send {a} to {b}")
        args = {"a": ["w", "x", "y", "z"], "b": {"line": "1 Elm", "city": "Ur"}}
        assert (
            plain(present_effect(definition, args).sentence)
            == "Send 4 entries to 1 Elm, Ur"
        )

    def test_without_a_sentence_one_is_made_and_a_tag_says_so(self):
        shown = present_effect(tool(presenter="record"), ARGS)
        assert plain(shown.sentence).startswith("Refund: 899.00 USD")
        assert "Title made from names" in tag_texts(shown)


class TestChanges:
    def test_fields_are_compared_and_the_destructive_come_first(self):
        before = {
            "city": "Ur",
            "name": "Dana",
            "note": "call first",
            "zip": None,
            "status": "shipped",
        }
        args = {"zip": "1", "name": "Dan", "city": "Ur", "note": None, "order": "7"}
        shown = present_effect(define("record"), args, before=before)
        assert [(c.kind, c.path) for c in shown.changes] == [
            ("removed", "note"),
            ("changed", "name"),
            ("added", "zip"),
        ]
        assert row(shown.changes, "name").before == Cell("Dana")
        assert row(shown.changes, "name").after == Cell("Dan")
        assert row(shown.changes, "note").after == Cell("none", "nothing")
        assert [r.path for r in shown.unchanged] == ["city"]
        assert [r.path for r in shown.other] == ["order"]
        assert shown.top == ()
        assert [r.path for r in shown.now] == ["status"]
        assert shown.counts == {"changed": 1, "added": 1, "removed": 1}
        assert "Empties 1 field" in tag_texts(shown)

    def test_without_a_before_state_nothing_pretends_to_be_known(self):
        shown = present_effect(define("record"), ARGS)
        assert not shown.before_known
        assert shown.changes == ()
        assert len(shown.other) == 3

    def test_an_address_is_compared_line_by_line(self):
        before = {"address": {"line1": "1 Elm", "line2": "Flat 2", "city": "Ur"}}
        args = {"order_id": "7", "address": {"line1": "9 Oak", "city": "Ur"}}
        labels = {"address": "New address", "address.line1": "Street"}
        shown = present_effect(define("record", labels=labels), args, before=before)
        assert [(c.kind, c.label) for c in shown.changes] == [
            ("removed", "New address, line 2"),
            ("changed", "Street"),
        ]
        assert [r.label for r in shown.unchanged] == ["New address, city"]

    def test_a_list_is_compared_as_a_collection(self):
        before, args = {"labels": ["vip", "late"]}, {"labels": ["late", "new"]}
        shown = present_effect(define("record"), args, before=before)
        removed, added = shown.changes
        assert (removed.kind, removed.before) == ("removed", Cell("vip"))
        assert (added.kind, added.after) == ("added", Cell("new"))
        assert [r.label for r in shown.unchanged] == ["Labels 1"]

    def test_an_emptied_list_is_a_removal(self):
        shown = present_effect(
            define("record"), {"labels": []}, before={"labels": ["vip"]}
        )
        assert {c.kind for c in shown.changes} == {"removed"}

    def test_types_are_told_apart(self):
        schema = {"type": "object", "properties": {"n": {"type": "number"}}}
        for definition, was in (
            (define("record"), "1"),
            (define("record", schema=schema), "1 (as text)"),
        ):
            (change,) = present_effect(definition, {"n": 1}, before={"n": "1"}).changes
            assert change.before is not None
            assert change.after is not None
            assert change.before.typed_text == was
            assert change.after.typed_text == "1 (number)"

    @pytest.mark.parametrize(
        ("read", "told"),
        [(0, ("0", "1")), (1200, ("1,200", "1,201")), (True, None), ("2", None)],
    )
    def test_what_each_call_moves_by_a_number_is_a_change(self, read, told):
        counts = [{"fact": "labels", "label": "Labels of the order"}]
        definition = define("record", facts=["labels"], counts=counts)
        facts, before = {"before": {"labels": read}}, {"labels": read, "city": "Ur"}
        shown = present_effect(definition, {"city": "Uruk"}, before=before, facts=facts)
        moved = [c for c in shown.changes if c.path == "labels"]
        said = [
            (c.before and c.before.typed_text, c.after and c.after.typed_text)
            for c in moved
        ]
        assert said == ([told] if told else [])
        assert ("labels" in [row.path for row in shown.now]) is not bool(told)

    def test_a_deletion_removes_every_field_of_the_record(self):
        definition = define("deletion", effect="Delete customer {customer_id}")
        before = {"email": "dana@example.com", "address": {"city": "Ur"}}
        shown = present_effect(definition, {"customer_id": "C-1"}, before=before)
        assert [(c.kind, c.before, c.after) for c in shown.changes] == [
            ("removed", Cell("dana@example.com").settled, None),
            ("removed", Cell("Ur").settled, None),
        ]
        assert shown.gone == "erased"
        assert [r.path for r in shown.other] == ["customer_id"]
        assert shown.now == shown.top == shown.unchanged == ()
        assert shown.tags[0].text == "Deletes"

    def test_a_deletion_without_a_record_removes_what_it_names(self):
        shown = present_effect(define("deletion"), {"customer_id": "C-1"})
        assert [(c.kind, c.before, c.after) for c in shown.changes] == [
            ("removed", Cell("C-1"), None)
        ]


class TestTheCurrentRecord:
    BEFORE: ClassVar = {f"field_{n}": f"value {n}" for n in range(8)}

    def test_a_record_is_folded_where_the_policy_names_no_fact(self):
        shown = present_effect(define("record"), {}, before=self.BEFORE)
        assert shown.top == ()
        assert [r.path for r in shown.now] == list(self.BEFORE)

    def test_the_facts_of_the_policy_stand_on_top_in_its_order(self):
        definition = define(
            "record",
            facts=["paid", "paid_currency", "late", "field_3", "gone"],
            review={"facts": ["late", "paid", "field_3", "gone"]},
            labels={"late": "Late"},
        )
        facts = {"before": {"paid": 89900, "paid_currency": "USD", "late": True}}
        shown = present_effect(definition, {}, before=self.BEFORE, facts=facts)
        assert [(r.label, r.cell.text) for r in shown.top] == [
            ("Late", "yes"),
            ("Paid", "899.00 USD"),
            ("Field 3", "value 3"),
            ("Gone", "not known"),
        ]
        assert "field_3" not in [r.path for r in shown.now]

    def test_nothing_is_said_of_a_record_that_was_not_read(self):
        definition = define("record", facts=["late"], review={"facts": ["late"]})
        assert present_effect(definition, {}).top == ()

    def test_a_fact_stands_in_the_sentence(self):
        definition = define(
            "money",
            facts=["name"],
            effect="Pay {amount} {currency} to {before.name}",
            money=[{"amount": "amount", "currency": "currency"}],
        )
        facts = {"before": {"name": "Casey Lindholm"}}
        known = present_effect(definition, ARGS, facts=facts).sentence
        assert plain(known) == "Pay 899.00 USD to Casey Lindholm"
        assert known[-1] == ValuePart("Casey Lindholm")
        unknown = present_effect(definition, ARGS).sentence
        assert plain(unknown) == "Pay 899.00 USD to (not known)"

    def test_a_conflict_is_the_first_and_loud_tag(self):
        found = [
            {"id": "a", "text": "Reason says no; carrier says yes", "checked": True},
            {"id": "b", "text": "Other", "checked": False},
        ]
        shown = present_effect(define("record"), ARGS, facts={"conflicts": found})
        assert shown.tags[:2] == (
            Tag("Reason says no; carrier says yes", True, RiskIndicator.CONTRADICTION),
            Tag("Not checked: Other", loud=True),
        )


class TestUninspectable:
    def test_an_undeclared_argument_is_named_and_still_shown(self):
        shown = present_effect(define("record"), ARGS | {"extra": {"deep": "x"}})
        (found,) = shown.uninspectable
        assert (found.path, found.reason) == (
            "extra.deep",
            "The tool does not declare it.",
        )
        assert row(shown.other, "extra.deep").cell == Cell("x")
        assert "1 argument could not be inspected" in tag_texts(shown)
        assert shown.tags[0].loud

    def test_a_declared_object_with_open_insides_is_not_inspectable(self):
        schema = {"type": "object", "properties": {"data": {"type": "object"}}}
        shown = present_effect(
            define("record", schema=schema), {"data": {"a": 1, "b": 2}}
        )
        assert [u.path for u in shown.uninspectable] == ["data.a", "data.b"]

    def test_a_blob_was_not_decoded(self):
        shown = present_effect(define("record"), ARGS | {"reason": "QUJD" * 60})
        assert [u.path for u in shown.uninspectable] == ["reason"]

    def test_a_fully_declared_effect_has_none(self):
        assert present_effect(define("record"), ARGS).uninspectable == ()

    @pytest.mark.parametrize(
        ("value", "said"),
        [("a\u202eb", "Hidden characters"), ("p\u0430y", "Mixed alphabets")],
    )
    def test_what_cannot_be_seen_is_tagged(self, value, said):
        assert said in tag_texts(present_effect(define("record"), {"reason": value}))
        assert said in tag_texts(present_effect(define("record"), {value: "x"}))

    def test_an_unknown_kind_says_that_it_has_no_view(self):
        assert not present_effect(define("nobody_wrote_it"), ARGS).dedicated
        assert present_effect(define("record"), ARGS).dedicated


class TestSensitive:
    def test_a_sensitive_value_is_nowhere_in_the_presentation(self):
        parts = {"sensitive": ["order_id", "address.city", "amount"]}
        args = ARGS | {"order_id": "SECRET-1", "address": {"city": "SECRET-2"}}
        args["amount"] = "73123.45"
        for kind in KINDS:
            shown = present_effect(
                define(kind, **parts), args, before={"order_id": "SECRET-3"}
            )
            said = " ".join(collect_texts(shown))
            assert "SECRET" not in said
            assert "123" not in said

    def test_equal_values_can_be_told_by_a_keyed_name(self):
        definition = define("record", sensitive=["order_id"])
        shown = present_effect(definition, ARGS, conceal=lambda text: f"[#{len(text)}]")
        assert row(shown.other, "order_id").cell == Cell("[#7]", "sensitive")


class TestReversal:
    @pytest.mark.parametrize(
        ("kind", "word"),
        [
            ("reversible", "Reversible"),
            ("partly", "Partly reversible"),
            ("irreversible", "Irreversible"),
        ],
    )
    def test_it_is_the_tools_declaration(self, kind, word):
        declared = {"kind": kind, "undo": "Cancel it.", "stays": "The mail."}
        found = present_effect(define("record", reversal=declared), ARGS).reversal
        assert (found.word, found.undo, found.stays) == (
            word,
            "Cancel it.",
            "The mail.",
        )

    def test_undeclared_is_told_as_irreversible(self):
        found = present_effect(define("record"), ARGS).reversal
        assert found.word == "Unknown: treat as irreversible"


def test_the_length_of_a_review_is_announced():
    assert not present_effect(define("record"), ARGS).is_long
    assert present_effect(define("record"), {f"a{n}": n for n in range(13)}).is_long


def test_uncertainty_and_profile_are_facts():
    profile = {"reversible": False, "blast_radius": 5, "external": True}
    shown = present_effect(
        define("record", profile=profile | {"regulated": True}),
        ARGS,
        facts={"uncertain": 0.4},
    )
    assert tag_texts(shown) == [
        "The agent says it is unsure",
        "Human approval required by law or contract",
        "External effect",
    ]


def test_labels_come_from_the_policy_before_the_reader():
    definition = define("record", labels={"order_id": "Order"})
    reader = {"order_id": "Lie", "amount": "Sum"}
    shown = present_effect(definition, ARGS, labels=reader)
    assert [r.label for r in shown.other] == ["Order", "Sum", "Currency"]


def test_every_text_of_a_presentation_can_be_printed():
    shown = present_effect(define("email"), {"to": ["a\u202eb"], "body": "\ud83d"})
    assert TEXT == {"type": "string"}
    for text in collect_texts(shown):
        inert.build_display(text)
        inert.build_chip(text)


def test_members_stand_as_the_schema_requires_them_and_none_is_lost():
    schema = {
        "required": ["line1", "city"],
        "properties": {"place": {"required": ["b", "a"]}},
    }
    args = {
        "city": "Harwick",
        "extra": 1,
        "line1": "12 Alder Row",
        "place": {"a": 1, "b": 2},
    }
    ordered = sort_by_schema(args, schema)
    assert ordered == args
    assert list(ordered) == ["line1", "city", "extra", "place"]
    assert list(ordered["place"]) == ["b", "a"]


def test_a_second_line_stands_below_the_first():
    text = {"type": "string"}
    names = ["line1", "city", "region", "postcode", "country", "line2"]
    place = {
        "type": "object",
        "properties": dict.fromkeys(names, text),
        "required": names[:5],
    }
    schema = {
        "type": "object",
        "properties": {"address": {"$ref": "#/$defs/place"}},
        "$defs": {"place": place},
    }
    args = {"address": {name: name.upper() for name in sorted(names)}}
    ordered = sort_by_schema(args, schema)["address"]
    assert list(ordered) == ["line1", "line2", *names[1:5]]
    (value,) = present_effect(tool(effect="{address}", schema=schema), args).sentence
    assert isinstance(value, ValuePart)
    assert value.parts == ("LINE1", "LINE2", "CITY", "REGION", "POSTCODE", "COUNTRY")
    two = sort_by_schema({"place2": 2, "city": 1, "place": 0}, {"required": ["place"]})
    assert list(two) == ["place", "place2", "city"]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (None, "Nothing to compare"),
        ({"labels": 3}, "Nothing in the record to compare with"),
        ({"order_id": "78291"}, "No field of the record changes"),
    ],
)
def test_what_is_not_compared_says_so(before, said):
    assert present_effect(define("record"), ARGS, before=before).compared == said


@pytest.mark.parametrize("nothing", ["", None])
def test_what_is_empty_in_a_record_is_none(nothing):
    record = {"carrier": nothing, "order_id": nothing}
    shown = present_effect(
        define("record", review={"facts": ["carrier"]}), ARGS, before=record
    )
    assert row(shown.top, "carrier").cell.typed_text == "none"
    assert row(shown.changes, "order_id").before.typed_text == "none"
    (change,) = present_effect(define("record"), {"v": None}, before={"v": ""}).changes
    assert change.before
    assert change.after
    assert change.before.typed_text == " (empty text)"
    assert change.after.typed_text == "none (nothing)"


WORDED = {
    "type": "object",
    "properties": {
        "reason": {"enum": ["not_received", "damaged"]},
        "twice": {"enum": ["a_b", "a b"]},
        "host": {"enum": ["a_b@x.example", "damaged"]},
        "free": TEXT,
        "due": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
    },
}
MOMENT, SAID = "2026-11-23T16:29:18Z", "16:29:18 UTC, 23 November 2026"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("reason", "not_received", "not received"),
        ("reason", "damaged", "damaged"),
        ("twice", "a_b", "a_b"),
        ("host", "a_b@x.example", "a_b@x.example"),
        ("free", "not_received", "not_received"),
        ("due", MOMENT, SAID),
        ("due", "2026-11-23T18:29:18+02:00", SAID),
        ("due", "2026-11-23T16:29:18.5Z", "2026-11-23T16:29:18.5Z"),
        ("day", "2026-11-23", "23 November 2026"),
        ("free", MOMENT, MOMENT),
    ],
)
def test_what_the_schema_knows_is_said_in_words(name, value, said):
    definition = tool(effect=f"Do {{{name}}}", schema=WORDED, presenter="record")
    shown = present_effect(definition, {name: value})
    cell = row(shown.other, name).cell
    assert (cell.text, cell.exact.text) == (said, value)
    assert shown.sentence[-1].text == said
    changed = present_effect(definition, {name: value}, before={name: "x"})
    assert row(changed.changes, name).after.text == said


def test_one_moment_written_otherwise_is_told_apart():
    args, before = {"due": "2026-11-23T18:29:18+02:00"}, {"due": MOMENT}
    definition = tool(schema=WORDED, presenter="record")
    (change,) = present_effect(definition, args, before=before).changes
    assert change.before
    assert change.after
    assert [change.before.text, change.after.text] == [MOMENT, args["due"]]


def test_what_a_reader_says_of_time_is_in_words():
    record = {"since": MOMENT, "note": f"on {MOMENT}", "seen": MOMENT}
    definition = define("record", review={"facts": ["seen"]})
    shown = present_effect(definition, ARGS, before=record)
    assert row(shown.top, "seen").cell.text == SAID
    assert row(shown.now, "since").cell.text == SAID
    assert row(shown.now, "note").cell.text == f"on {MOMENT}"
    gone = present_effect(define("deletion"), ARGS, before=record)
    assert row(gone.changes, "since").before.text == SAID
    compared = present_effect(definition, {"since": "tomorrow"}, before=record)
    assert row(compared.changes, "since").before.text == MOMENT


READ = datetime(2026, 11, 24, 17, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fact", "value", "note"),
    [
        ("kept_until", MOMENT, "ended 1 day before it was read"),
        ("kept_until", "2026-11-26T18:00:00Z", "2 days left when read"),
        ("kept_until", "2026-11-24T17:00:20Z", "less than a minute left when read"),
        ("kept_until", "2026-11-23", "ended 5 hours before it was read"),
        ("kept_until", "2024-11-24", "ended 729 days before it was read"),
        ("kept_until", "2019-12-29", "ended 6 years before it was read"),
        ("kept_until", "2026-11-24", ""),
        ("kept_until", "2026-11-30", "4 days left when read"),
        ("delivered", MOMENT, "1 day before it was read"),
        ("delivered", "2026-11-24T20:00:00Z", "3 hours after it was read"),
        ("kept_until", "nobody knows", ""),
    ],
)
def test_a_fact_says_whether_it_is_over(fact, value, note):
    definition = define("record", review={"facts": [fact]})
    facts = {"before": {fact: value}}
    (found,) = present_effect(definition, ARGS, facts=facts, at=READ).top
    assert found.note == note
    (silent,) = present_effect(definition, ARGS, facts=facts).top
    assert silent.note == ""


@pytest.mark.parametrize("moment", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z"])
def test_the_ends_of_the_calendar_stay_as_they_are(moment):
    facts = {"before": {"kept_until": moment}}
    definition = define("record", review={"facts": ["kept_until"]})
    (found,) = present_effect(definition, ARGS, facts=facts, at=READ).top
    assert found.cell.text == moment


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("line1", "Line 1"),
        ("order_id", "Order ID"),
        ("iban", "IBAN"),
        ("sha256", "Sha256"),
    ],
)
def test_a_name_is_said_in_words(name, said):
    assert humanise_name(name) == said
