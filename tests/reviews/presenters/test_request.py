"""A request taken apart; what lets somebody in is not shown."""

from __future__ import annotations

import pytest

from reviews.presenters import collect_texts, request
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows, tags


def call(url="https://api.example/x", before=None, **args):
    return kinds.show("call_api", url=url, before=before, **{"headers": {}} | args)


def test_method_host_path_and_query_have_rows():
    shown = kinds.show("call_api")
    found = {row.label: row.cell.text for row in shown.views[0].rows}
    assert found == {
        "Method": "POST",
        "Host": "api.partner.example",
        "Port": "8443",
        "Path": "/v1/orders",
    }
    query = [(row.label, row.cell.text, row.warns) for row in shown.views[1].rows]
    assert query == [("dry", "no", ()), ("api_key", "abc", ("A key in the address",))]


def test_a_credential_is_named_and_never_shown():
    shown = kinds.show("call_api")
    assert "sk-live" not in " ".join(collect_texts(shown))
    assert rows(shown)["headers.Authorization"].cell.kind == "sensitive"
    assert rows(shown)["headers.Accept"].cell.text == "json"
    assert "Sends a credential" in loud(shown)


def test_a_new_host_is_one_that_the_reader_does_not_know():
    assert "POST to a new host" in loud(kinds.show("call_api"))
    known = {"known_hosts": ["api.example"]}
    assert "POST to a new host" not in loud(call(before=known))
    assert "New host" in loud(call("https://x.example/", method="GET", before=known))
    assert not any("new host" in text.lower() for text in tags(call()))


@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "127.0.0.1", "169.254.169.254", "localhost", "db", "x.internal"),
        *("[::1]", "2130706433", "0x7f.1", "0177.0.0.1", "192.168.1.1"),
    ],
)
def test_private_addresses_are_called_out_however_they_are_spelt(host):
    assert "A private address" in loud(call(f"https://{host}/x"))


@pytest.mark.parametrize(
    ("url", "tag"),
    [
        ("https://shop.example@evil.example/", "A user name before the host"),
        ("http://api.example/", "Not encrypted"),
        ("https://xn--pypal-4ve.example/", "A host in another alphabet"),
        ("https://b\u00fccher.example/", "A host in another alphabet"),
    ],
)
def test_what_else_an_address_hides(url, tag):
    assert tag in loud(call(url))


def test_deletes_and_climbing_paths_are_called_out():
    assert "Deletes" in loud(call(method="DELETE"))
    shown = call("https://api.example/a/%2e%2e/b")
    (path,) = [row for row in shown.views[0].rows if row.label == "Path"]
    assert path.warns == ("Goes up with ..",)


@pytest.mark.parametrize(
    "url",
    [
        *("", "ftp://x.example/", "x.example", "https:\\\\x.example", "https://x y/"),
        *("https://x.example:99999/", "https://[x/", "https://a\u202eb.example/"),
        *("https://x.example/\n", "javascript:alert(1)", "//x.example/"),
    ],
)
def test_an_address_with_two_readings_is_not_decoded(url):
    shown = call(url)
    assert "The address was not decoded" in loud(shown)
    assert "url" in [one.argument for one in shown.uninspectable]
    with pytest.raises(request.UnreadableAddress):
        request.parse_address(url)
