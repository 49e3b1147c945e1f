from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from ninja.responses import Response

from hitl import api as hitl_api
from hitl import docs
from hitl.api import CountersealApi, api


@pytest.mark.django_db
def test_the_page_names_every_call_of_the_schema(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode().replace("<wbr>", "")
    for path in api.get_openapi_schema()["paths"]:
        assert path in page


@pytest.mark.django_db
def test_the_description_is_made_once_however_often_it_is_asked_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, make = [], api.get_openapi_schema

    def count(_: CountersealApi) -> Any:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(CountersealApi, "get_openapi_schema", count)
    hitl_api.build_description.cache_clear()
    hitl_api._encode_description.cache_clear()
    first = client.get("/api/v1/openapi.json")
    assert first.headers["Content-Type"] == "application/json"
    assert first.json() == json.loads(Response(make()).content)
    assert client.get("/api/v1/openapi.json").content == first.content
    assert client.get("/api/v1/docs").status_code == 200
    assert len(made) == 1
    assert client.post("/api/v1/openapi.json").status_code == 405


def test_a_body_is_told_field_by_field() -> None:
    found = {(c.method, c.path): c for c in docs.list_calls(api.get_openapi_schema())}
    fields = {f.name: f for f in found["POST", "/api/v1/proposals"].body}
    assert {name for name, f in fields.items() if f.required} == {
        "thread",
        "tool",
        "args",
    }
    assert fields["priority"].kind == "low | normal | critical"


@pytest.mark.django_db
def test_it_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    assert "https://" not in page
    assert "<style" not in page
