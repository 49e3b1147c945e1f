"""A message in a channel, and what mail brings along."""

from __future__ import annotations

import pytest

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows, tags


def test_everybody_in_a_channel_is_called_out():
    shown = kinds.show("post_message")
    assert "Notifies everyone in the channel" in loud(shown)
    assert list(rows(shown)) == ["channel", "text"]
    assert loud(kinds.show("post_message", text="hello")) == []


@pytest.mark.parametrize(
    ("name", "warns"),
    [
        ("invoice.pdf", ()),
        (
            "invoice.pdf.exe",
            ("Two file extensions: the last one counts", "Can run a program"),
        ),
        ("report.docm", ("Can run a program",)),
        ("page.html", ("Can run a program",)),
    ],
)
def test_attachments_are_rows_with_what_they_may_do(name, warns):
    shown = kinds.show("send_mail", attachments=[{"name": name, "size": 4096}])
    assert rows(shown)["attachments[0].name"].warns == warns
    assert ("An attachment can run a program" in loud(shown)) == bool(warns)
    assert "1 attachment" in tags(shown)


def test_many_more_recipients_than_usual_are_called_out():
    many = [f"a{n}@northgate.example" for n in range(10)]
    facts = {"before": {"usual_recipients": 2}}
    shown = kinds.show("send_mail", to=many, facts=facts)
    assert "10 recipients, usually 2" in loud(shown)


def test_a_name_that_is_another_address_is_called_out():
    shown = kinds.show("send_mail", to=["boss@northgate.example <spy@evil.example>"])
    assert rows(shown)["to[0]"].warns == ("The name shows another address",)


def test_an_address_that_imitates_ours_is_marked_in_its_row():
    shown = kinds.show("send_mail", to=["a@n0rthgate.example"])
    assert rows(shown)["to[0]"].cell.imitates


def test_html_that_may_hide_text_says_so():
    shown = kinds.show("send_mail", body="<p style='display:none'>secret</p>ok")
    text = rows(shown)["body"]
    assert text.also == ""
    read = [row for row in shown.other if row.label == "Body, as text"]
    assert read[0].warns == ("It may hide text from its reader",)
    assert "secret" in read[0].cell.text


@pytest.mark.parametrize(
    "name",
    [
        *("דנה", "Δανάη", "Дана Коган", "田中さん", "دانا", "José", "@דנה", "א.כהן"),
        *("dana@northgate.example (דנה)", "דנה <dana@northgate.example>"),
    ],
)
def test_a_name_in_any_alphabet_is_not_taken_for_a_domain(name):
    row = rows(kinds.show("send_mail", to=[name]))["to[0]"]
    assert (row.note, row.also, row.warns) == ("", "", ())


@pytest.mark.parametrize(
    ("address", "also"),
    [
        ("dana@דומיין.example", "xn--7dbemaxi.example"),
        ("דנה@דומיין.example", "xn--7dbemaxi.example"),
        ("dana@xn--7dbemaxi.example", "דומיין.example"),
    ],
)
def test_a_domain_in_another_alphabet_has_its_other_form_beside_it(address, also):
    row = rows(kinds.show("send_mail", to=[address]))["to[0]"]
    assert (row.note, row.also) == ("outside, the domain is", also)
