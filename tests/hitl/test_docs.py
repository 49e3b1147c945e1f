from __future__ import annotations

import pytest
from django.test import Client

from hitl import docs
from hitl.api import api


@pytest.mark.django_db
def test_the_page_names_every_call_of_the_schema(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    for path in api.get_openapi_schema()["paths"]:
        assert path in page


def test_a_body_is_told_field_by_field() -> None:
    found = {(c.method, c.path): c for c in docs.calls(api.get_openapi_schema())}
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
