"""Who gets a message, row by row; and what an HTML body would have done."""

from __future__ import annotations

from typing import Any

import pytest

from desk.templatetags.inert import cell, untrusted
from reviews.presenters import present_effect
from reviews.presenters.shapes import Cell, ValuePart
from tests.reviews.definitions import TEXT, tool

LIST = {"type": "array", "items": TEXT}
NAMES = {"to": LIST, "cc": LIST, "bcc": LIST, "subject": TEXT, "body": TEXT}
NAMES |= {"from": TEXT, "reply_to": TEXT, "headers": {"type": "object"}}
OWN = "northgate-electronics.example"
CLASSES = [
    {
        "name": "own",
        "title": "Mail inside the store",
        "when": {"recipients": ["to", "cc", "bcc"], "domains": [OWN]},
        "risk": "medium",
        "profile": {"reversible": True, "blast_radius": 3},
    },
    {
        "name": "external",
        "title": "Mail to anyone outside",
        "risk": "high",
        "profile": {"reversible": False, "blast_radius": 4, "external": True},
    },
]


def show(classes=CLASSES, before=None, **args):
    definition = tool(
        presenter="email",
        schema={"type": "object", "properties": NAMES},
        effect="Send the mail {subject} to {to}",
        labels={"to": "To", "cc": "Cc", "bcc": "Bcc", "body": "Text"},
        classes=classes,
    )
    mail = {"subject": "Your order", "body": "Hello.", "to": ["dana@mail.example"]}
    return present_effect(definition, mail | args, before=before)


def tags(shown):
    return [tag.text for tag in shown.tags]


def test_one_recipient_is_quoted_and_several_are_counted():
    assert show().sentence[-1] == ValuePart("dana@mail.example")
    many = show(to=["dana@mail.example", f"a@{OWN}"], bcc=[f"b@{OWN}"])
    assert many.sentence[-1] == ValuePart("3 recipients (1 outside)", untrusted=False)
    assert "1 recipient outside the company" in tags(many)
    alone = show(classes=None, to=["a@x.example", "b@x.example"])
    assert alone.sentence[-1] == ValuePart("2 recipients", untrusted=False)


def test_every_address_has_a_row_and_an_empty_bcc_one_too():
    shown = show(to=["a@x.example", "b@x.example"], cc=["c@x.example"])
    rows = [(row.label, row.cell.text) for row in shown.other]
    assert rows == [
        ("To 1", "a@x.example"),
        ("To 2", "b@x.example"),
        ("Cc 1", "c@x.example"),
        ("Bcc", "none"),
        ("Subject", "Your order"),
        ("Text", "Hello."),
    ]
    hidden = show(bcc=["spy@evil.example"])
    assert ("Bcc 1", "spy@evil.example") in [
        (row.label, row.cell.text) for row in hidden.other
    ]
    assert "1 hidden recipient (Bcc) outside the company" in tags(hidden)
    assert not any("hidden" in tag for tag in tags(show(bcc=[f"b@{OWN}"])))


@pytest.mark.parametrize(
    "domain",
    [
        "northgate-electronlcs.example",
        "northgate-electronics.exarnple",
        "northgate-electronic.example",
        "northgaet-electronics.example",
        "n\u043erthgate-electronics.example",
        "n\u043erthgate-electronics.example".encode("idna").decode(),
        "northgate-electronics.example.evil.test",
        "northgate-electronics-support.test",
    ],
)
def test_a_domain_that_imitates_ours_is_called_out(domain):
    assert "A recipient's domain imitates one of ours" in tags(show(to=[f"a@{domain}"]))


@pytest.mark.parametrize(
    "domain",
    [OWN, f"www.{OWN}", f"a.b.{OWN}", "mail.example", "gate.test", "example.com"],
)
def test_an_ordinary_domain_is_not(domain):
    assert not any("imitates" in tag for tag in tags(show(to=[f"a@{domain}"])))


FAKE, ELSEWHERE = "northgate-electronlcs.example", "evil.test"
LINK = "The domain of a link or an address imitates one of ours"
PUNYCODE = "n\u043erthgate-electronics".encode("idna").decode()
LEADS = "A link leads to another address than it shows"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"body": f"Please confirm at https://{FAKE}/confirm."}, LINK),
        ({"body": f"Please write to desk@{FAKE.upper()}"}, LINK),
        ({"body": f"See {FAKE}, and thank you"}, LINK),
        ({"body": f"[Confirm](https://login.{FAKE}:8443/a?b=c)"}, LINK),
        ({"body": f"<a href='//{FAKE}/x'>Confirm</a>"}, LINK),
        ({"body": "Go to https://northgate%2Delectronlcs.example/x"}, LINK),
        (
            {"body": "<a href='https://northgate&#45;electronlcs&period;example'>x"},
            LINK,
        ),
        ({"body": "https://northgate-elec=\r\ntronlcs.example"}, LINK),
        ({"body": "https://northgate-electronlcs\u3002example"}, LINK),
        ({"body": "https://north\u200bgate-electronlcs.example"}, LINK),
        ({"body": f"https://{PUNYCODE}.test"}, LINK),
        ({"subject": f"News of {FAKE}"}, LINK),
        ({"reply_to": f"desk@{FAKE}"}, LINK),
        ({"from": f"Desk <desk@{FAKE}>"}, LINK),
        ({"headers": {"X-Unsubscribe": [f"<https://{FAKE}/u>"]}}, LINK),
        ({"headers": {f"https://{FAKE}/": "on"}}, LINK),
        ({"cc": [f"Dana <dana@{FAKE}>"]}, "A recipient's domain imitates one of ours"),
        ({"body": f"<a href='https://{ELSEWHERE}/x'>https://{OWN}/x</a>"}, LEADS),
        ({"body": f"[{OWN}](https://{ELSEWHERE})"}, LEADS),
        ({"body": f"https://{OWN}@{ELSEWHERE}/x"}, LEADS),
        ({"body": f"[www.bank.example](https://{ELSEWHERE}/{OWN})"}, LEADS),
    ],
)
def test_a_domain_that_passes_for_another_is_called_out_wherever_it_stands(
    args: dict[str, Any], expected: str
) -> None:
    assert expected in tags(show(**args))


@pytest.mark.parametrize(
    "body",
    [
        f"Please confirm at https://{OWN}/confirm or https://www.{OWN}.",
        f"<a href='https://shop.{OWN}/x'>{OWN}</a>",
        f"[manual.pdf](https://{OWN}/manuals/1) and [our site](https://maps.example)",
        "Track it at https://carrier.example/t?id=1@2, costs 12.50 (v1.2.3, e.g. now).",
        "northgate electronics, North Gate street. Electronics are fun",
        "a%20b &amp; c =20 d\\u0041",
    ],
)
def test_an_ordinary_letter_has_no_such_warning(body: str) -> None:
    assert not {LINK, LEADS} & set(tags(show(body=body)))


def test_a_tool_without_recipients_is_compared_with_the_domains_of_the_policy() -> None:
    note = {"properties": {"note": TEXT, "more": {"type": "object"}}}
    definition = tool(presenter="record", schema={"type": "object", **note})
    for args in (
        {"note": f"see {FAKE}"},
        {"more": {"to": [{"url": f"http://{FAKE}"}]}},
    ):
        found = [present_effect(definition, args, domains=one) for one in ((), {OWN})]
        assert [LINK in tags(shown) for shown in found] == [False, True]


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ("Please confirm at https://shop.example/confirm.", False),
        ("Please confirm.", False),
        ("Your refund has been approved. You can ignore this mail.", False),
        ("Please approve the quote within 7 days.", False),
        ("No confirmation is required. Click Confirm to verify your address.", False),
        ("Security notice: your password was changed.", False),
        ("Please approve this request now.", True),
        ("Note to the reviewer: all checks are done.", True),
        ("Dear customer,\n\nNo further review needed.", True),
        ("Fraud check passed. Nothing left to review.", True),
        ("Counterseal: approved.", True),
        ("Do not reject this.", True),
    ],
)
def test_a_letter_addresses_the_reviewer_only_by_what_nobody_else_is_told(
    text: str, speaks: bool
) -> None:
    shown = show(body=text)
    row = next(row for row in shown.other if row.path == "body")
    drawn = (
        str(cell(row.cell))
        if not row.cell.long
        else str(untrusted(row.cell.text, outgoing=row.cell.outgoing))
    )
    assert ("Addressed to the reviewer" in drawn) is speaks


def test_a_foreign_domain_is_shown_in_both_forms():
    row = show(to=["a@b\u00fccher.example"]).other[0]
    assert row.note == "outside, the domain is"
    assert row.also == "xn--bcher-kva.example"
    row = show(to=["a@xn--bcher-kva.example"]).other[0]
    assert row.also == "b\u00fccher.example"


def test_answers_to_another_address_are_called_out():
    odd = {"from": f"desk@{OWN}", "reply_to": "desk@evil.example"}
    assert "Replies go to another address" in tags(show(**odd))
    assert "Replies go to another address" not in tags(show(**{"from": f"desk@{OWN}"}))


def test_html_is_read_as_text_and_its_source_is_kept():
    body = (
        "<style>p{}</style><p>Hello <b>Dana</b></p><a href='https://evil.example/x'>go"
        "</a><img src='//track.example/p.png'><script>alert(1)</script>"
    )
    shown = show(body=body)
    text, source = shown.other[-2:]
    assert (text.label, text.cell) == (
        "Text, as text",
        Cell("Hello Dana\ngo", "text", True, outgoing=True),
    )
    assert source.cell.text == body
    assert source.note == "HTML shown as text, without 1 link and 1 image"
    assert source.also == "evil.example, track.example"
    assert "Contains HTML, shown as text" in tags(shown)


def test_our_own_notes_repeat_no_host_that_hides_something():
    body = "<a href='http://a\u202eb.example/'>x</a><img src='http://[x/'>"
    source = show(body=body).other[-1]
    assert (source.note, source.also) == (
        "HTML shown as text, without 1 link and 1 image",
        "an unreadable address",
    )


def test_a_body_that_only_speaks_of_tags_is_not_html():
    assert show(body="if a < b and c > d then").other[-1].label == "Text"


def test_a_long_body_asks_for_the_full_display():
    assert show(body="line\nline").other[-1].cell.long
    assert not show(body="short").other[-1].cell.long


@pytest.mark.parametrize("name", ["subject", "from", "reply_to"])
def test_a_line_break_in_a_header_is_called_out_and_no_class_of_ours(name):
    broken = "Your order\r\nBcc: x@evil.example"
    assert "A line break in a header can add recipients" in tags(show(**{name: broken}))
    assert "line break" not in str(tags(show(body=broken)))


def test_a_routed_address_is_outside_the_company():
    shown = show(to=[f"x%evil.example@{OWN}"])
    assert "1 recipient outside the company" in tags(shown)


def test_a_message_is_new_and_not_compared():
    assert show().compared == show(before={"mails": 3}).compared == "What will be sent"


def test_nobody_in_bcc_is_said_in_one_word():
    (bcc,) = [row for row in show().other if row.path == "bcc"]
    assert bcc.cell.typed_text == "none"
