"""The OpenAPI document says what is really sent and taken."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pydantic import BaseModel

from agents import keys
from hitl.api import api
from reviews.models import Batch
from reviews.people import tokens
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.batches import batching

SCHEMAS = ("agents.schemas", "desk.api")


def list_models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith(SCHEMAS):
            yield model
        yield from list_models(model)


def read_body(document: dict[str, Any], path: str) -> dict[str, Any]:
    content = document["paths"][path]["post"]["requestBody"]["content"]
    reference = content["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    fields: dict[str, Any] = schema["properties"]
    return fields


def test_no_two_schemas_share_a_name() -> None:
    """The document has one place for each name: the second schema would replace the
    first one."""
    models = Counter(model.__name__ for model in set(list_models()))
    assert models["MessageIn"] == 1
    assert [name for name, number in models.items() if number > 1] == []


def test_every_reference_leads_to_a_schema_of_the_document() -> None:
    document = api.get_openapi_schema()
    names = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    known = {
        f"#/components/schemas/{name}" for name in document["components"]["schemas"]
    }
    assert names <= known
    assert "#/components/schemas/WebhookEventOut" in names


def test_agents_and_people_send_messages_of_their_own_kinds() -> None:
    document = api.get_openapi_schema()
    of_agent = read_body(document, "/api/v1/proposals/{proposal_id}/messages")
    of_person = read_body(document, "/api/v1/requests/{request_id}/messages")
    assert set(of_agent) == {"kind", "text", "round"}
    assert of_agent["kind"]["enum"] == ["answer", "question"]
    assert "send_back" in of_person["kind"]["enum"]


def test_fields_have_the_names_that_are_sent() -> None:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    assert "schema" in schemas["ToolOut"]["properties"]
    for name in ("MessageOut", "RequestMessageOut"):
        assert "from" in schemas[name]["required"]


def test_calls_that_are_refused_without_a_key_say_that_it_is_required() -> None:
    paths = api.get_openapi_schema()["paths"]
    required = {
        path: header["required"]
        for path, calls in paths.items()
        for header in calls.get("post", {}).get("parameters", [])
        if header["name"] == "Idempotency-Key"
    }
    assert required == {
        "/api/v1/proposals": True,
        "/api/v1/proposals/{proposal_id}/messages": True,
        "/api/v1/proposals/{proposal_id}/revisions": True,
        "/api/v1/grants/redeem": False,
        "/api/v1/questions": True,
        "/access/v1/requests": False,
    }
    (header,) = (
        one
        for one in paths["/api/v1/proposals"]["post"]["parameters"]
        if one["name"] == "Idempotency-Key"
    )
    assert header["schema"]["type"] == "string"


STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def list_times(value: Any) -> Iterator[str]:
    """Every text in a JSON value that looks like a time."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from list_times(part)
    elif isinstance(value, str) and LOOKS_LIKE_TIME.match(value):
        yield value


@pytest.mark.django_db
def test_both_halves_of_the_api_write_times_alike(gate: Gate) -> None:
    batching.formed(gate)
    request = propose(gate.agent, "pay_queryable", thread="t-9").request
    decide(request, gate.rita)
    bearers = {
        "agent": keys.issue_key(agent=gate.agent, by=gate.owen),
        "person": tokens.create_token(person=gate.rita, name="script"),
    }
    paths = [
        ("agent", "/proposals"),
        ("agent", f"/proposals/{request.proposal_id}"),
        ("person", "/requests"),
        ("person", "/requests?status=authorized"),
        ("person", f"/requests/{request.pk}"),
        ("person", "/batches"),
        ("person", f"/batches/{Batch.objects.get().pk}"),
    ]
    for who, path in paths:
        headers = {"Authorization": f"Bearer {bearers[who]}"}
        answer = Client().get(f"/api/v1{path}", headers=headers)
        found = list(list_times(answer.json()))
        assert found, path
        assert [one for one in found if not STAMP.fullmatch(one)] == [], path


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "POST"])
def test_a_method_that_is_not_allowed_is_a_problem(gate: Gate, method: str) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().generic(method, "/api/v1/whoami", headers=headers)
    assert answer.status_code == 405
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Allow"] == "GET, HEAD"
    assert answer.json()["code"] == "method_not_allowed"
    assert answer.json()["detail"].endswith("Use GET, HEAD.")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/whoami", "/tools", "/proposals", "/openapi.json"])
def test_head_answers_where_get_does(gate: Gate, path: str) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    headers = {"Authorization": f"Bearer {key}"}
    got = Client().get(f"/api/v1{path}", headers=headers)
    head = Client().head(f"/api/v1{path}", headers=headers)
    assert (got.status_code, head.status_code) == (200, 200)
    assert head.content == b""
    assert head["Content-Type"] == got["Content-Type"]
    assert Client().head("/api/v1/whoami").status_code == 401


@pytest.mark.django_db
def test_a_slash_at_the_end_is_named(gate: Gate) -> None:
    for path in ("proposals", "requests", "requests/r-1"):
        answer = Client().post(f"/api/v1/{path}/", b"{}", "application/json")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert f"no slash at their end: use /api/v1/{path}." in answer.json()["detail"]
    assert "slash" not in Client().get("/api/v1/nothing/").json()["detail"]


@pytest.mark.django_db
def test_a_compressed_body_is_refused_by_its_name(gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "k-1"}
    body = gzip.compress(b'{"thread": "t-1", "tool": "look", "args": {"q": "a"}}')
    path = "/api/v1/proposals"
    answer = Client().post(
        path,
        body,
        "application/json",
        headers={**headers, "Content-Encoding": "gzip"},
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "content_encoding")
    assert answer.json()["detail"].startswith("Content-Encoding is not supported.")
    plain = {**headers, "Content-Encoding": "identity"}
    body = gzip.decompress(body)
    answer = Client().post(path, body, "application/json", headers=plain)
    assert answer.status_code == 201
