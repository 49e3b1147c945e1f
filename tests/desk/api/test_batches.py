"""`/api/v1/batches`: the same list, digest and checks, for people's programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from reviews.batches import formation
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Batch
from reviews.people import tokens
from tests import factories
from tests.conftest import Gate
from tests.reviews.batches.batching import formed, members, proposed, said
from tests.worlds import WORLD


@pytest.fixture
def rita(gate: Gate) -> Client:
    token = tokens.create_token(person=gate.rita, name="script")
    return Client(headers={"Authorization": f"Bearer {token}"})


def get(client: Client, batch: Batch, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/api/v1/batches/{batch.pk}{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def decide(client: Client, batch: Batch, **body: Any) -> Any:
    path = f"/api/v1/batches/{batch.pk}/decide"
    return client.post(path, json.dumps(body), content_type="application/json")


def statuses() -> set[str]:
    return set(ApprovalRequest.objects.values_list("status", flat=True))


def test_it_says_what_the_digest_is_of(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    assert found["digest"] == said(batch, gate.rita).digest
    assert (found["total"], found["currency"]) == ("41.90", "USD")
    assert [item["position"] for item in found["items"]] == [1, 2, 3]
    assert found["items"][0]["entry"] == members(batch)[0].entry
    listed = rita.get("/api/v1/batches").json()["items"]
    assert [one["id"] for one in listed] == [batch.pk]


def test_a_list_is_approved_by_its_digest(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    items = [item["entry"]["request"] for item in found["items"]]
    answer = decide(rita, batch, digest=found["digest"], items=items, verdict="approve")
    assert answer.status_code == 200, answer.content
    assert answer.json()["status"] == "decided"
    assert statuses() == {RequestStatus.AUTHORIZED}


def test_some_are_left_out_by_name(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    out = members(batch)[0].id
    found = get(rita, batch, f"?leave_out={out}")
    items = [one["entry"]["request"] for one in found["items"]][1:]
    silent = decide(rita, batch, digest=found["digest"], items=items, verdict="approve")
    assert silent.status_code == 409  # a member that is in no list
    answer = decide(
        rita,
        batch,
        digest=found["digest"],
        items=items,
        left_out=[out],
        verdict="approve",
    )
    assert answer.status_code == 200, answer.content
    assert ApprovalRequest.objects.get(pk=out).status == RequestStatus.PENDING


def test_what_changed_is_named_and_nothing_is_decided(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    items = [item["entry"]["request"] for item in found["items"]]
    factories.overdue(members(batch)[1].request)
    answer = decide(rita, batch, digest=found["digest"], items=items, verdict="approve")
    assert answer.status_code == 409
    assert answer.json()["code"] == "batch_changed"
    assert [one["path"] for one in answer.json()["errors"]] == [items[1]]
    assert statuses() == {RequestStatus.PENDING}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"digest": "x", "items": [], "verdict": "approve"},
        {"digest": "x", "items": ["r-1"] * 51, "verdict": "approve"},
        {"digest": "x", "items": ["r-1"], "verdict": "modify"},
        {"digest": "x", "items": ["r-1"], "verdict": "approve", "more": 1},
    ],
)
def test_an_ill_formed_body_is_invalid(
    gate: Gate, rita: Client, body: dict[str, Any]
) -> None:
    answer = decide(rita, formed(gate), **body)
    assert answer.status_code == 422
    assert statuses() == {RequestStatus.PENDING}


def test_the_documentation_names_the_routes(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for path in ("/api/v1/batches", "/api/v1/batches/{batch_id}/decide"):
        assert path in paths


def test_one_more_member_is_a_change(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    items = [item["entry"]["request"] for item in found["items"]]
    formation.form_batch_around(proposed(gate, "9.00")[0].pk)
    answer = decide(rita, batch, digest=found["digest"], items=items, verdict="approve")
    assert answer.status_code == 409


def test_a_list_is_escalated_with_a_reason(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    items = [item["entry"]["request"] for item in found["items"]]
    body = {"digest": found["digest"], "items": items, "verdict": "escalate"}
    assert decide(rita, batch, **body).status_code == 422
    assert decide(rita, batch, **body, reason_code="unsafe").status_code == 200
    tiers = ApprovalRequest.objects.values_list("tier", flat=True)
    assert set(tiers) == {"escalate"}


def test_a_cursor_leads_through_all_batches_once(gate: Gate, rita: Client) -> None:
    decided = formed(gate)
    found = get(rita, decided)
    items = [item["entry"]["request"] for item in found["items"]]
    decide(rita, decided, digest=found["digest"], items=items, verdict="approve")
    for name in ("a", "b", "c"):
        proposed(gate, "7.00", "8.00", group=name)
    formation.form_missed_batches()
    ids = set(Batch.objects.values_list("pk", flat=True))
    assert len(ids) == 4
    pages: list[list[dict[str, Any]]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = rita.get(f"/api/v1/batches?limit=2&cursor={cursor}").json()
        pages.append(answer["items"])
        cursor = answer["next_cursor"]
    assert [len(page) for page in pages] == [2, 2]
    assert {one["id"] for page in pages for one in page} == ids
    assert (pages[1][1]["id"], pages[1][1]["status"]) == (decided.pk, "decided")


def test_what_does_not_belong_is_refused_by_its_path(gate: Gate, rita: Client) -> None:
    batch = formed(gate)
    found = get(rita, batch)
    items = [item["entry"]["request"] for item in found["items"]]
    body = {"digest": found["digest"], "items": items, "verdict": "approve"}
    for more, path in (
        ({"left_out": [items[0]]}, "left_out[0]"),
        ({"left_out": ["r-other"]}, "left_out[0]"),
        (
            {"verdict": "reject", "reason_code": "other", "stop_at_failure": False},
            "stop_at_failure",
        ),
    ):
        answer = decide(rita, batch, **{**body, **more})
        assert answer.status_code == 422
        assert [one["path"] for one in answer.json()["errors"]] == [path]
    assert statuses() == {RequestStatus.PENDING}


def test_each_item_says_what_the_page_shows_of_it(gate: Gate, rita: Client) -> None:
    document = factories.document_of_tests()
    document["tools"]["repay"] |= {
        "reader": {"kind": "callable", "path": "tests.worlds.read"},
        "facts": ["customer_name", "destination", "fee", "fee_currency"],
        "labels": {"fee": "Fee"},
        "money": [],
        "batchable": {"items": 50, "varying": ["customer", "amount", "note"]},
        "review": {"facts": ["destination"], "columns": ["customer_name", "fee"]},
    }
    factories.policy(gate.people, document)
    WORLD["facts"] = {
        "customer_name": "Maria Brandt",
        "destination": "Lindau",
        "fee": "1.50",
        "fee_currency": "EUR",
    }
    batch = formed(gate)
    found = get(rita, batch)
    item = found["items"][0]
    assert item["title"].startswith("Pay ")
    facts = {one["name"]: one["value"] for one in item["facts"]}
    assert facts["customer_name"] == "Maria Brandt"
    assert facts["destination"] == "Lindau"
    assert item["rationale"]
    assert {"tags", "flags", "stands_out", "evidence"} <= item.keys()
    (cost,) = found["costs"]
    assert (cost["label"], cost["total"], cost["known"]) == ("Fee", "4.50 EUR", 3)
    assert "in total" in found["title"]
    out = item["entry"]["request"]
    (less,) = get(rita, batch, f"?leave_out={out}")["costs"]
    assert less["total"] == "3.00 EUR"


def test_an_item_that_is_none_is_not_left_out_in_silence(
    gate: Gate, rita: Client
) -> None:
    answer = rita.get(f"/api/v1/batches/{formed(gate).pk}?leave_out=r-other")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "leave_out[0]"


@pytest.fixture(autouse=True)
def _facts() -> Any:
    yield
    WORLD.pop("facts", None)
