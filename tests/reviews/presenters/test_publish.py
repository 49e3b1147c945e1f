"""What becomes public, against what is live."""

from __future__ import annotations

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, tags


def publish(before=None, **args):
    return kinds.show("publish_page", before=before, **args)


def test_the_text_stands_against_what_is_live():
    shown = kinds.show("publish_page")
    view = shown.views[-1]
    assert [(line.kind, line.text) for line in view.files[0].hunks[0].lines][:2] == [
        ("removed", "You may return goods within 30 days."),
        ("added", "You may return goods within 14 days."),
    ]
    assert shown.other == ()
    assert shown.now == ()


def test_audience_embargo_and_time_are_called_out():
    assert "Public audience" in loud(publish())
    assert "Public audience" not in loud(publish(audience="team"))
    assert "No audience given" in loud(publish(audience=...))
    assert "Under an embargo" in loud(publish(embargo="2026-05-01"))
    assert "Immediately" in tags(publish())
    assert "Immediately" not in tags(publish(publish_at="2026-05-01T09:00:00Z"))


def test_html_is_read_as_text():
    shown = publish(text="<p>Hello</p><img src='https://t.example/p'>")
    row = shown.views[-1].rows[0]
    assert (row.cell.text, row.note, row.also) == (
        "Hello",
        "HTML shown as text, without 1 image",
        "t.example",
    )
    assert [one.cell.text for one in shown.other] == [
        "<p>Hello</p><img src='https://t.example/p'>"
    ]
