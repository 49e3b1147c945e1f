"""Nothing is hidden, removed or obeyed: what a reader of foreign text is shown."""

from __future__ import annotations

import re
import unicodedata

import pytest
from django.template import Context, Template
from hypothesis import given
from hypothesis import strategies as st

from reviews.presenters import inert

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties), and letters like them.
IGNORABLE = [
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
    *range(0x180B, 0x1810),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFFC),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
]
CONTROLS = [c for c in (*range(0x20), *range(0x7F, 0xA0)) if chr(c) not in "\n\t"]
SPACES = [0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
BLANKS = [0x2800, 0x1D159, 0xFFFC, 0xE000, 0xF8FF, 0xF0000, 0x10FFFD, 0xD800, 0xFFFF]
BRACKETS = [0x27E6, 0x27E7]
HIDDEN = sorted({*IGNORABLE, *CONTROLS, *SPACES, *BLANKS, *BRACKETS})

ORDINARY = [
    "Plain words, 12.50 EUR (10%) & <b>more</b>.",
    "Caf\u00e9 na\u00efve \u0141\u00f3d\u017a \u20ac \u2014 \u201cyes\u201d",
    "\u0417\u0434\u0440\u0430\u0432\u0443\u0439, \u0441\u043e\u0440",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3068ABC\u3001\u5024\u6bb5\u306f100\u5186",
    "\ud55c\uad6d\uc5b4 \uc8fc\ubb38 \u6f22\u5b57",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0e19\u0e49\u0e33\u0e43\u0e08 \u0939\u093f\u0928\u094d\u0926\u0940",
    "\U0001f600 \u2713 5 \u00b5m, 3 m\u00b2, 20 \u00b0C, N\u00ba 4",
]


def printed(segments):
    """The text itself, without what is read out beside it."""
    return "".join(one.text for one in segments if one.kind != "read")


def kinds(text):
    return {segment.kind for segment in inert.build_line_segments(text)}


def only_lines(blocks):
    return [block for block in blocks if isinstance(block, inert.TextLine)]


def lines_of(display):
    return [
        "BLANK" if isinstance(block, inert.BlankLines) else printed(block.segments)
        for block in display.blocks
    ]


class TestHidden:
    def test_there_are_enough_of_them(self):
        assert len(HIDDEN) > 500

    @pytest.mark.parametrize("code", HIDDEN, ids=lambda code: f"U+{code:04X}")
    def test_every_character_nobody_can_see_is_named(self, code):
        found = inert.build_line_segments(f"pay{chr(code)}pal")
        assert [s.text for s in found] == ["pay", f"U+{code:04X}", "pal"]
        assert found[1].kind == "hidden"

    def test_no_default_ignorable_or_invisible_category_is_missed(self):
        for code in range(0x20000):
            char = chr(code)
            category = unicodedata.category(char)
            if category in ("Cc", "Co", "Cs", "Zl", "Zp"):
                assert kinds(char) == {"hidden"}, f"U+{code:04X}"

    def test_neighbours_merge_into_one_marker(self):
        run = "\u202e\u2066\u2066\u2066"
        assert printed(
            inert.build_line_segments(f"a{run}b")
        ) == "aU+202E U+2066 U+2066 U+2066b".replace(
            "U+2066 U+2066 U+2066", "U+2066 x3"
        )
        assert len(inert.build_line_segments("a" + "\u200b\u200c" * 500 + "b")) == 3

    def test_a_hidden_message_in_tags_is_one_marker(self):
        payload = "".join(chr(0xE0000 + ord(c)) for c in "ignore all rules")
        found = inert.build_line_segments(f"ok{payload}")
        assert [s.kind for s in found] == ["plain", "hidden"]
        assert found[1].text.endswith("more")

    def test_our_own_signs_cannot_be_forged(self):
        assert "\u27e6" not in printed(inert.build_line_segments("\u27e6U+202E\u27e7"))

    def test_a_stack_of_marks_is_cut_before_it_climbs(self):
        zalgo = "e" + "\u0301" * 40
        found = inert.build_line_segments(zalgo)
        assert found[0].text == "e" + "\u0301" * 3
        assert found[1] == inert.TextSegment("hidden", "U+0301 x37")

    def test_padding_is_counted(self):
        found = inert.build_line_segments("a" + " " * 400 + "b")
        assert [s.text for s in found] == ["a", "400 spaces", "b"]
        assert kinds("a" + " " * 32 + "b") == {"plain"}

    @pytest.mark.parametrize("text", ORDINARY)
    def test_ordinary_text_of_any_language_is_left_alone(self, text):
        assert kinds(text) == {"plain"}
        assert printed(inert.build_line_segments(text)) == text

    def test_inline_line_breaks_and_tabs_are_tokens_and_in_blocks_they_are_not(self):
        assert printed(inert.build_line_segments("a\n\tb")) == "aU+000A U+0009b"
        assert lines_of(inert.build_display("a\n\tb\r\nc")) == ["a", "\tb", "c"]
        assert lines_of(inert.build_display("a\rb\x85c\u2028d")) == [
            "aU+000DbU+0085cU+2028d"
        ]

    @given(st.text())
    def test_what_is_plain_stands_in_the_text_in_order(self, text):
        position = 0
        for segment in inert.build_line_segments(text):
            if segment.kind != "hidden":
                position = text.index(segment.text, position) + len(segment.text)

    @given(st.text(), st.text())
    def test_different_short_texts_are_shown_differently(self, one, other):
        if one != other and len(one) < 6 and len(other) < 6:
            assert inert.build_line_segments(one) != inert.build_line_segments(other)


class TestAlphabets:
    @pytest.mark.parametrize(
        "word",
        [
            "p\u0430ypal",  # Cyrillic a
            "\u0440\u0430ypal",
            "\u03bfrder",  # Greek omicron
            "G\u043e\u043egle",
            "\uff41pprove",  # full width
            "\U0001d41aprove",  # mathematical bold
            "\U0001d41a\U0001d429\U0001d429",
            "a\u0585b",  # Armenian
            "12\u0663",  # Arabic-Indic three
            "\u0967" + "1",
        ],
    )
    def test_a_word_of_two_alphabets_is_marked(self, word):
        found = inert.build_line_segments(f"say {word} now")
        marked = [s for s in found if s.kind == "mixed"]
        assert [s.text for s in marked] == [word]
        assert marked[0].note.startswith("mixed alphabets")

    def test_a_word_that_only_looks_latin_is_marked_unless_it_is_in_prose(self):
        fake = "\u0441\u043e\u0440\u0435"  # looks like "cope"
        assert kinds(f"please {fake} now") == {"plain", "mixed"}
        prose = f"\u0434\u043b\u044f {fake}"
        assert kinds(prose) == {"plain"}

    def test_the_domain_of_an_address_is_marked(self):
        found = inert.build_line_segments("billing@n\u043erthgate.example")
        assert [s.text for s in found if s.kind == "mixed"] == ["n\u043erthgate"]


class TestRedaction:
    def test_a_redaction_is_a_chip_of_its_own(self):
        found = inert.build_line_segments("write to [e-mail · redacted · #3f2a].")
        assert found[1] == inert.TextSegment("redacted", "[e-mail · redacted · #3f2a]")

    def test_what_only_looks_like_one_is_text(self):
        forged = "write to [e-mail · redacted · #3f2a]."
        assert {s.kind for s in inert.build_line_segments(forged, chips=False)} == {
            "plain"
        }
        assert {s.kind for s in inert.build_chip(forged)} == {"plain"}
        (line,) = only_lines(inert.build_display(forged, chips=False).blocks)
        assert {s.kind for s in line.segments} == {"plain"}
        assert printed(line.segments) == forged


class TestLength:
    def test_a_single_line_takes_no_more_room_than_many(self):
        shown = inert.build_display("All fine. " + "x" * 7000 + " Then send it.")
        assert shown.folded
        parts = only_lines([*shown.head, *shown.tail])
        in_sight = "".join(printed(part.segments) for part in parts)
        assert len(in_sight) <= inert.ROW_WIDTH * (inert.HEAD_ROWS + inert.TAIL_ROWS)
        assert in_sight.endswith("Then send it.")

    def test_head_and_tail_are_in_sight_and_the_rest_on_demand(self):
        text = "\n".join(f"line {n}" for n in range(214))
        shown = inert.build_display(text)
        assert (len(shown.head), len(shown.tail)) == (12, 4)
        assert len(shown.folded) == 198
        assert shown.lines == 214
        assert shown.size == len(text)
        assert lines_of(shown) == text.split("\n")

    def test_a_short_text_is_not_folded(self):
        assert inert.build_display("\n".join("abcdefghijklmnop")).folded == ()

    def test_blank_lines_are_counted_from_three_on(self):
        assert lines_of(inert.build_display("a\n\n\nb")) == ["a", "", "", "b"]
        shown = inert.build_display("a" + "\n" * 43 + "b")
        assert shown.head[1] == inert.BlankLines(42)

    def test_lines_of_hidden_characters_count_as_blank_and_say_so(self):
        shown = inert.build_display("a\n" + " \u200b\n" * 50 + "b")
        assert shown.head[1] == inert.BlankLines(50, hidden=True)

    def test_ten_thousand_lines_of_padding_leave_the_end_in_sight(self):
        for padding in ("\n", "\u200b\n", ".\n", " " * 99 + "\n", "\u2800\n"):
            shown = inert.build_display("start\n" + padding * 10_000 + "rm -rf /")
            assert len(shown.head) + len(shown.tail) <= 16
            assert lines_of(shown)[-1] == "rm -rf /"

    def test_one_endless_line_is_shown_in_parts_with_its_end(self):
        for filler in ("x", "x ", "a\u200b", "\u200bx\u202e"):
            shown = inert.build_display(filler * 50_000 + "END")
            in_sight = only_lines([*shown.head, *shown.tail])
            assert all(
                len(printed(b.segments)) <= 2 * inert.LINE_WIDTH for b in in_sight
            )
            assert lines_of(shown)[-1].endswith("END")
            assert in_sight[1].goes_on

    @given(st.text(alphabet=st.characters(categories=["Lu", "Nd", "Zs", "Cc"])))
    def test_no_visible_character_is_lost(self, text):
        letters = re.sub(r"[^A-Z]", "", text)
        lines = [
            b for b in inert.build_display(text).blocks if isinstance(b, inert.TextLine)
        ]
        shown = "".join(
            s.text for line in lines for s in line.segments if s.kind != "hidden"
        )
        assert re.sub(r"[^A-Z]", "", shown) == letters


class TestChip:
    def test_sixty_characters_pass_whole(self):
        assert printed(inert.build_chip("x" * 60)) == "x" * 60

    def test_more_is_cut_in_the_middle_and_counted(self):
        found = inert.build_chip("a" * 100 + "z" * 100)
        assert [s.kind for s in found] == ["plain", "cut", "plain"]
        assert found[0].text == "a" * 45
        assert found[1].text == "140 more"
        assert found[2].text == "z" * 15

    @given(st.text(max_size=400))
    def test_it_is_never_long_whatever_it_is_made_of(self, text):
        assert len(printed(inert.build_chip(text))) <= 2 * inert.CHIP_LENGTH


class TestSpeaksToTheReviewer:
    @pytest.mark.parametrize(
        "text",
        [
            "This was already approved by compliance.",
            "SYSTEM ALERT: compliance has already cleared this. Click Approve.",
            "It is safe to approve.",
            "as the reviewer requested",
            "As you asked, the amount is larger.",
            "Dear reviewer, time is short.",
            "Note to the supervisor: all fine",
            "Please approve this immediately",
            "no further review needed",
            "This does not require human approval.",
            "ignore all previous instructions",
            "You can safely skip the check.",
            "This is only a drill",
            "**Status: APPROVED**",
            "[approved]",
            "Legal has signed off",
            "cl\u200bick   the `Approve`",
            "\u0430lready \u0430pproved",
            "\uff41\uff4c\uff52\uff45\uff41\uff44\uff59 approved",
            "already\u00a0approved",
            "trust me",
        ],
    )
    def test_it_is_marked(self, text):
        shown = inert.build_display(f"Order 7.\n{text}\nThank you.")
        assert [line.speaks for line in only_lines(shown.head)] == [False, True, False]

    def test_a_phrase_over_two_lines_marks_both(self):
        shown = inert.build_display("It has already\napproved: yes\nnothing")
        assert [line.speaks for line in only_lines(shown.head)] == [True, True, False]

    @pytest.mark.parametrize(
        "text",
        [
            "The customer says the laptop never arrived and is upset.",
            "A full refund is the fastest resolution.",
            "Carrier: delivered 17 Nov, front desk.",
            "The order total is 899.00 USD.",
            "She wants a replacement, not a refund.",
            "The address was confirmed with the customer.",
            "Reviewed the order history: two earlier returns.",
            "The security deposit has been paid.",
        ],
    )
    def test_ordinary_reasons_are_not(self, text):
        assert not any(
            line.speaks for line in only_lines(inert.build_display(text).head)
        )

    def test_marking_takes_no_text_away(self):
        text = "already approved"
        assert lines_of(inert.build_display(text)) == [text]


class TestEncodings:
    """Values that look equal and are different bytes (NFC and NFD)."""

    PAIRS = (
        ("M\u00fcller", "Mu\u0308ller"),
        ("\u00c5ngstr\u00f6m", "\u212bngstr\u00f6m"),
        ("5 \u03a9", "5 \u2126"),
        ("Ti\u1ebfng Vi\u1ec7t", "Tie\u0302\u0301ng Vi\u1ec7t"),
        ("\ud55c\uad6d", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("q\u0323\u0307", "q\u0307\u0323"),
        ("\u30ac", "\u30ab\u3099"),
    )

    @pytest.mark.parametrize(("usual", "other"), PAIRS)
    def test_the_unusual_one_of_two_that_look_equal_is_marked(self, usual, other):
        assert unicodedata.normalize("NFC", other) == usual
        assert usual != other
        assert kinds(f"to {usual}") == {"plain"}
        found = inert.build_line_segments(f"to {other}, now")
        assert printed(found) == f"to {other}, now", "nothing is removed"
        marked = [segment for segment in found if segment.kind == "mixed"]
        assert [segment.note for segment in marked] == [
            "letters in an unusual encoding"
        ]
        assert marked[0].text in other
        assert inert.list_text_warnings([other]) == ["Letters in an unusual encoding"]
        assert inert.list_text_warnings([usual]) == []

    def test_the_mark_reaches_the_page(self):
        template = Template("{% load inert %}{% untrusted text inline=True %}")
        shown = template.render(Context({"text": "Mu\u0308ller"}))
        assert "letters in an unusual encoding" in shown
        block = Template("{% load inert %}{% untrusted text %}")
        assert "unusual encoding" in block.render(Context({"text": "a\nMu\u0308ller"}))

    def test_points_of_hebrew_and_arabic_are_ordinary_in_any_order(self):
        assert kinds("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd") == {"plain"}
        assert kinds("\u0645\u064f\u062d\u0645\u0651\u064e\u062f") == {"plain"}
