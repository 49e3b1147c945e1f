"""The store's process: which calls it accepts, and what its pages show."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from demo.store import database
from demo.store.filters import visible
from tests.demo.conftest import Store, signed

REFUND = {
    "order_id": "78260",
    "amount": "59.00",
    "currency": "USD",
    "reason": "damaged",
}
BODY = {"tool": "process_refund", "args": REFUND, "idempotency_key": "never"}
TEXT = json.dumps(BODY)
OTHER = "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="


@pytest.mark.parametrize("hook", ["effects", "readers"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(TEXT, secret=OTHER),
        signed(json.dumps({**BODY, "idempotency_key": "other"})),
        signed(TEXT, age=timedelta(minutes=6)),
        {**signed(TEXT), "webhook-id": "m_other"},
        {**signed(TEXT), "webhook-signature": "no comma"},
        {**signed(TEXT), "webhook-signature": "v1,not base64!"},
        {**signed(TEXT), "webhook-timestamp": "soon"},
    ],
    ids=["none", "secret", "body", "age", "id", "no_comma", "no_base64", "no_time"],
)
def test_what_the_gate_did_not_sign_is_refused(store: Store, hook, headers):
    response = store.post_raw(f"/{hook}/process_refund", TEXT, headers)
    assert response.status_code == 401
    assert response.json()["code"] == "bad_signature"


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/effects/process_refund", {"tool": "add_label"}),
        ("/effects/wire_money", {"tool": "wire_money"}),
        ("/effects/process_refund", {"args": []}),
        ("/readers/process_refund", {"args": None}),
        ("/effects/process_refund", {"idempotency_key": ""}),
    ],
)
def test_a_signed_call_that_is_malformed_is_refused(store: Store, path, changes):
    assert store.post(path, {**BODY, **changes}).status_code == 400


def test_concurrent_posts_of_one_key_pay_once_and_are_counted(store: Store):
    with ThreadPoolExecutor(6) as pool:
        calls = [("process_refund", REFUND, "once")] * 12
        answers = list(pool.map(lambda call: store.effect(*call), calls))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["status"] == "succeeded"
    for page in ("/", "/orders/78260/"):
        text = " ".join(re.sub(r"<[^>]*>", "", store.page(page).text).split())
        assert "paid once requests received with this key: 12" in text
        assert "RF-1" in text


def test_a_key_used_for_another_call_does_nothing(store: Store):
    label = {"order_id": "78229", "label": "first"}
    store.effect("add_label", label, "reused")
    body = {"tool": "add_label", "args": {**label, "label": "second"}}
    answer = store.post("/effects/add_label", {**body, "idempotency_key": "reused"})
    assert answer.status_code == 422
    assert store.post("/readers/add_label", body).json()["before"]["labels"] == [
        "first"
    ]


def test_the_inbox_gives_messages_as_they_were_sent(store: Store):
    shipped = sorted(database.data("messages"), key=lambda message: message["id"])
    listed = store.page("/inbox.json").json()["messages"]
    assert [row["id"] for row in listed] == [row["id"] for row in shipped]
    assert "hostile" not in listed[0]
    bodies = [database.expand_body(row["body"]) for row in shipped]
    assert "\u202e" in bodies[16]
    assert store.page(f"/inbox/{listed[16]['id']}.json").json()["body"] == bodies[16]
    page = store.page(f"/inbox/{listed[16]['id']}/").text
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page


@pytest.mark.parametrize("path", ["/", "/orders/78291/", "/inbox/", "/inbox/m-032/"])
def test_pages_load_nothing_and_run_nothing(store: Store, path):
    response = store.page(path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    for element in ("script", "img", "iframe", "object", "form", "style"):
        assert f"<{element}" not in response.text.lower()


def test_the_back_office_reloads_until_told_not_to(store: Store):
    assert 'http-equiv="refresh"' in store.page("/").text
    assert 'http-equiv="refresh"' not in store.page("/?refresh=off").text


@pytest.mark.parametrize("path", ["/orders/1/", "/inbox/m-999/", "/nothing"])
def test_what_does_not_exist_is_404(store: Store, path):
    response = store.page(path)
    assert response.status_code == 404
    assert "This is not here" in response.text


def test_another_host_name_is_refused(store: Store):
    headers = {**signed(TEXT), "host": "rebound.example"}
    response = store.post_raw("/readers/process_refund", TEXT, headers)
    assert response.status_code == 400


def test_every_hidden_character_is_seen():
    text = "re\u200bfund\t\u202eabc\x1b[2K\u2028\nGrüße"
    seen = "re⟨U+200B⟩fund\t⟨U+202E⟩abc⟨U+001B⟩[2K⟨U+2028⟩\nGrüße"
    assert visible(text) == seen
