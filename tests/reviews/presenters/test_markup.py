"""HTML as text: read once, in one place, and never obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.presenters import markup

pieces = st.sampled_from(
    [
        *("<p>", "</p>", "<script>", "</script>", "<img src=//x.example>", "<a href='"),
        *(
            "'>",
            "&lt;",
            "&#x202e;",
            "<!--",
            "-->",
            "<svg>",
            "text",
            "\n",
            "<",
            "<style>",
        ),
    ]
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>Hello <b>Dana</b></p><p>Bye</p>", "Hello Dana\n\nBye"),
        ("a<br>b", "a\nb"),
        ("<script>alert(1)</script><style>p{}</style>x", "x"),
        ("1 &lt; 2 &amp;amp;", "1 < 2 &amp;"),
        ("<!-- hidden -->x", "x"),
        ("<textarea>in</textarea><title>t</title>", "in"),
    ],
)
def test_the_text_is_what_a_reader_would_see(source, text):
    assert markup.parse_html(source).text == text


def test_what_it_would_have_loaded_is_counted():
    found = markup.parse_html(
        "<a href='https://a.example/x'>x</a><img src=//b.example>"
        "<link href=//c.example><form action='http://d.example'>"
        "<iframe src='https://e.example'></iframe></form>"
        "<img src='https://f.example'><a href='javascript:x'>y</a>"
    )
    assert found.summary == "HTML shown as text, without 2 links, 4 images and 1 form"
    assert found.addresses == (
        "a.example, b.example, c.example, d.example, e.example, 1 more host"
    )


@given(st.lists(pieces, max_size=20).map("".join))
def test_it_never_raises_and_its_words_are_ours(source):
    found = markup.parse_html(source)
    assert found.summary.isascii()
    assert found.addresses.isascii()


def test_bleach_is_called_in_one_place_only():
    root = Path(markup.__file__).parents[2]
    packages = ("journal", "policies", "reviews", "agents", "hitl", "demo")
    found = [
        path.name
        for package in packages
        for path in (root / package).rglob("*.py")
        if "import bleach" in path.read_text() or "from bleach" in path.read_text()
    ]
    assert found == ["markup.py"]


@pytest.mark.parametrize(
    ("text", "is_html"),
    [
        ("<p>Hello</p>", True),
        ("<!DOCTYPE html><html><body>x</body></html>", True),
        ("From: Dana <dana@mail.example>", False),
        ('File "x.py", line 3, in <module>', False),
        ("<p>Hello</p> <dana@mail.example>", False),
        ("1 < 2 and 3 > 2", False),
        ("<!-- only a comment -->", False),
    ],
)
def test_a_text_is_html_when_all_of_its_tags_are(text, is_html):
    assert markup.is_html_document(text) is is_html
