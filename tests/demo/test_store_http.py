"""The store's process: what it lets in, and what its pages show."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from .store import Store, signed


class Elements(HTMLParser):
    """The names of a page's elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


REFUND = {
    "order_id": "78260",
    "amount": "59.00",
    "currency": "USD",
    "reason": "damaged",
}
BODY = {"tool": "process_refund", "args": REFUND, "idempotency_key": "never"}
OTHER = "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="
PATHS = (
    "/effects/process_refund",
    "/look-up/process_refund",
    "/readers/process_refund",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(json.dumps(BODY), secret=OTHER),
        signed(json.dumps({**BODY, "idempotency_key": "other"})),
        signed(json.dumps(BODY), age=timedelta(minutes=6)),
        {**signed(json.dumps(BODY)), "webhook-id": "m_other"},
        {**signed(json.dumps(BODY)), "webhook-signature": "no comma"},
        {**signed(json.dumps(BODY)), "webhook-signature": "v1,not base64!"},
        {**signed(json.dumps(BODY)), "webhook-timestamp": "soon"},
    ],
    ids=[
        "none",
        "other_secret",
        "other_body",
        "too_old",
        "other_id",
        "no_comma",
        "no_base64",
        "no_time",
    ],
)
def test_what_the_gate_did_not_sign_is_refused(store: Store, path, headers):
    response = store.raw(path, json.dumps(BODY), headers)
    assert response.status_code == 401
    assert response.json()["code"] == "bad_signature"


def test_a_signed_call_for_another_tool_is_refused(store: Store):
    body = {**BODY, "tool": "add_label"}
    assert store.post("/effects/process_refund", body).status_code == 400


def test_a_tool_that_is_not_there_is_refused(store: Store):
    body = {**BODY, "tool": "wire_money"}
    assert store.post("/effects/wire_money", body).status_code == 400


def test_the_header_cannot_name_another_key_than_the_body(store: Store):
    text = json.dumps(BODY)
    headers = {**signed(text), "Idempotency-Key": "another"}
    assert store.raw("/effects/process_refund", text, headers).status_code == 400


def test_a_get_performs_nothing(store: Store):
    assert store.page("/effects/process_refund").status_code == 405


def test_concurrent_posts_of_one_key_pay_once_and_are_counted(store: Store):
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(
                lambda _: store.effect("process_refund", REFUND, "once"), range(12)
            )
        )
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["status"] == "succeeded"
    text = re.sub(r"<[^>]*>|\s+", " ", store.page("/orders/78260/").text)
    assert "requests received with this key: 12" in re.sub(" +", " ", text)


def test_a_key_used_for_another_call_is_no_usable_answer(store: Store):
    label = {"order_id": "78229", "label": "one"}
    store.effect("add_label", label, "reused")
    body = {
        "tool": "add_label",
        "args": {**label, "label": "two"},
        "idempotency_key": "reused",
    }
    assert store.post("/effects/add_label", body).status_code == 422


def test_the_look_up_of_a_key_answers_as_the_effect_did(store: Store):
    answer = store.effect("check_inventory", {"sku": "NG-1001"}, "looked-up")
    body = {"tool": "check_inventory", "idempotency_key": "looked-up"}
    assert store.post("/look-up/check_inventory", body).json() == answer


def test_a_reading_comes_over_the_wire(store: Store):
    body = {"tool": "process_refund", "args": {"order_id": "78291"}}
    reading = store.post("/readers/process_refund", body).json()
    assert reading["facts"]["order_total"] == "899.00"


def test_the_inbox_gives_messages_as_they_were_sent(store: Store):
    listed = store.page("/inbox.json").json()["messages"]
    assert len(listed) >= 40
    assert "hostile" not in listed[0]
    body = store.page(f"/inbox/{listed[16]['id']}.json").json()["body"]
    assert "\u202e" in body


@pytest.mark.parametrize("path", ["/", "/orders/78291/", "/inbox/", "/inbox/m-032/"])
def test_pages_load_nothing_and_run_nothing(store: Store, path):
    response = store.page(path)
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "script-src" not in response.headers["content-security-policy"]
    elements = Elements()
    elements.feed(response.text)
    assert elements.names.isdisjoint({"script", "img", "iframe", "object", "form"})
    assert not {name for name in elements.attributes if name.startswith("on")}
    assert "style" not in elements.attributes


def test_foreign_markup_is_text(store: Store):
    page = store.page("/inbox/m-032/").text
    assert "&lt;script&gt;approve(" in page
    assert "pixel.evil.example" in page


def test_the_back_office_reloads_until_told_not_to(store: Store):
    assert 'http-equiv="refresh"' in store.page("/").text
    assert 'http-equiv="refresh"' not in store.page("/?refresh=off").text


@pytest.mark.parametrize("path", ["/orders/1/", "/inbox/m-999/", "/nothing"])
def test_what_is_not_there_is_404(store: Store, path):
    response = store.page(path)
    assert response.status_code == 404
    assert "This is not here" in response.text


def test_another_host_name_is_refused(store: Store):
    response = store.raw("/livez", "", {"host": "rebound.example"})
    assert response.status_code == 400
