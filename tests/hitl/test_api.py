"""The OpenAPI document says what is really sent and taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from hitl.api import api

SCHEMAS = ("agents.schemas", "reviews.api")


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
        "/access/v1/requests": False,
    }
    (header,) = (
        one
        for one in paths["/api/v1/proposals"]["post"]["parameters"]
        if one["name"] == "Idempotency-Key"
    )
    assert header["schema"]["type"] == "string"
