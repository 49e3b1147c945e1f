"""Small things that views said and that were not so."""

from __future__ import annotations

import pytest

from reviews.presenters import present_effect
from reviews.presenters.shapes import ValuePart
from tests.reviews.definitions import TEXT, tool
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, tags

UNREAD = "The amount could not be read"
MONEY = {
    "presenter": "money",
    "money": [{"amount": "fee", "currency": "currency"}],
    "schema": {
        "type": "object",
        "properties": {"order": TEXT, "fee": TEXT, "currency": TEXT},
        "required": ["order"],
    },
}


def test_an_amount_that_may_be_absent_and_is_was_not_unreadable():
    definition = tool(**MONEY)
    assert UNREAD not in tags(present_effect(definition, {"order": "7"}))
    given = {"order": "7", "fee": "much", "currency": "USD"}
    assert UNREAD in loud(present_effect(definition, given))


def test_a_list_of_groups_is_counted_by_its_groups():
    flights = [{"number": f"HAT{n}", "date": "2026-05-01"} for n in range(4)]
    definition = tool(presenter="record", effect="Book {flights}")
    assert present_effect(definition, {"flights": flights}).sentence[-1] == ValuePart(
        "4 entries", untrusted=False
    )
    one = present_effect(definition, {"flights": [{"a": 1, "b": 2, "c": 3, "d": 4}]})
    assert one.sentence[-1] == ValuePart("1 entry", untrusted=False)


def test_an_address_without_a_scheme_says_what_it_lacks():
    shown = kinds.show("call_api", url="api.partner.example/v1/orders")
    (found,) = [one for one in shown.uninspectable if one.path == "url"]
    assert found.reason == ("Not decoded: it has no scheme: add https:// or http://.")


@pytest.mark.parametrize("url", ["/v1/orders", "orders", "javascript:alert(1)"])
def test_what_names_no_host_is_still_not_decoded(url):
    shown = kinds.show("call_api", url=url)
    assert "url" in [one.path for one in shown.uninspectable]


def access(name: str):
    schema = {"type": "object", "properties": {"principal": TEXT, "role": TEXT}}
    definition = tool(name=name, title="Access", presenter="access", schema=schema)
    return present_effect(definition, {"principal": "riley", "role": "logs.view"})


def test_what_takes_access_away_never_is_said_to_expire():
    assert "Never expires" in loud(access("add_member"))
    taken = loud(access("remove_member"))
    assert "Never expires" not in taken
    assert "Removes access" in taken


@pytest.mark.parametrize(
    ("before", "after"), [(["a", "b"], "c"), ("c", ["a", "b"]), ("c", {"d": "e"})]
)
def test_a_value_of_another_type_empties_nothing(before, after):
    shown = present_effect(tool(presenter="record"), {"v": after}, before={"v": before})
    assert not [text for text in loud(shown) if text.startswith("Empties")]
    emptied = present_effect(tool(presenter="record"), {"v": ""}, before={"v": before})
    assert [text for text in loud(emptied) if text.startswith("Empties")]


def test_links_in_a_message_are_marked_with_their_hosts():
    text = "Pay at https://pay.evil.example/x or www.shop.example, see HTTP://a.example"
    shown = kinds.show("send_mail", body=text)
    (body,) = [row for row in shown.other if row.path == "body"]
    assert body.note == "3 links to"
    assert body.also == "pay.evil.example, www.shop.example, a.example"
    (plain,) = [
        row for row in kinds.show("send_mail", body="Hello").other if row.path == "body"
    ]
    assert plain.note == plain.also == ""
