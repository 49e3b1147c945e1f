"""Arguments that the schema marks sensitive: a chip on every way to people."""

from __future__ import annotations

import json
from typing import Any

import pytest

from desk.api import requests
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.factories import PASSWORD, propose
from tests.security.world import BACKEND

SECRET = "C-7-Very-Private"


@pytest.fixture
def asked(gate: Gate) -> ApprovalRequest:
    """A payment whose customer and note nobody sees without a reveal."""
    document = factories.document_of_tests()
    document["tools"]["pay_queryable"]["sensitive"] = ["customer", "note"]
    factories.policy(gate.people, document)
    args = {"customer": SECRET, "amount": "40.00", "currency": "USD", "note": SECRET}
    return propose(gate.agent, "pay_queryable", args=args).request


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "otto", "owen"])
def test_no_page_and_no_answer_shows_it(
    gate: Gate, asked: ApprovalRequest, client: Any, name: str
) -> None:
    client.force_login(gate.people[name], BACKEND)
    for path in (
        "/api/v1/requests",
        f"/api/v1/requests/{asked.pk}",
        f"/requests/{asked.pk}/",
        f"/requests/{asked.pk}/decide/?arm=modify",
        f"/requests/{asked.pk}/live/",
        "/queue/",
        "/log/",
        "/threads/riley/t-1/",
    ):
        assert SECRET not in client.get(path).content.decode(), path


def test_an_edit_keeps_what_it_could_not_see(
    gate: Gate, asked: ApprovalRequest, client: Any
) -> None:
    client.force_login(gate.rita, BACKEND)
    path = f"/api/v1/requests/{asked.pk}"
    args = client.get(path).json()["args"]
    assert "redacted" in args["customer"]
    body = {
        "verdict": "modify",
        "version": 1,
        "action_hash": asked.action_hash,
        "args": {**args, "amount": "39.00"},
        "password": PASSWORD,
    }
    said = client.post(f"{path}/decide", json.dumps(body), "application/json")
    assert said.status_code == 200, said.content
    asked.refresh_from_db()
    kept = asked.sealed.revision.args
    assert (kept["customer"], kept["note"], kept["amount"]) == (SECRET, SECRET, "39.00")


def test_a_chip_elsewhere_is_only_text(gate: Gate, asked: ApprovalRequest) -> None:
    revision = asked.sealed.revision
    chip = requests.hide_sensitive(revision)["customer"]
    edited = {**requests.hide_sensitive(revision), "note": "other", "currency": chip}
    found = requests.restore_sensitive(revision, edited)
    assert found["customer"] == SECRET
    assert (found["note"], found["currency"]) == ("other", chip)
