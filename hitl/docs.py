"""The API's documentation as a page rendered from the OpenAPI document, without scripts
or files from other sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from . import api


@dataclass(frozen=True, slots=True)
class ApiField:
    """One property of a request body, or one parameter."""

    name: str
    kind: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One operation: its address, its audience and its input."""

    method: str
    path: str
    about: str
    audience: str
    parameters: tuple[ApiField, ...]
    body: tuple[ApiField, ...]

    @property
    def anchor(self) -> str:
        return f"{self.method}{self.path}".replace("/", "-").strip("-").lower()


@login_not_required
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Documentation of every call, agents' calls first. Public, as the schema is."""
    calls = list(list_calls(api.build_description()))
    groups = [(who, [c for c in calls if c.audience == who]) for who in AUDIENCES]
    return render(request, "docs.html", {"groups": groups})


AUDIENCES = ("agents", "people", "AuthZEN")


def list_calls(schema: dict[str, Any]) -> Iterator[ApiCall]:
    """The operations of an OpenAPI document, in the order of the code."""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield ApiCall(
                method=method.upper(),
                path=path,
                about=operation.get("description", operation.get("summary", "")),
                audience=next(iter(operation.get("tags", [])), "agents"),
                parameters=tuple(_list_parameters(operation)),
                body=tuple(_list_body_fields(operation, schema)),
            )


def _list_parameters(operation: dict[str, Any]) -> Iterator[ApiField]:
    for given in operation.get("parameters", []):
        kind = f"{given['in']}, {_format_kind(given.get('schema', {}))}"
        required = bool(given.get("required"))
        yield ApiField(given["name"], kind, required, given.get("description", ""))


def _list_body_fields(
    operation: dict[str, Any], schema: dict[str, Any]
) -> Iterator[ApiField]:
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    model = schema["components"]["schemas"].get(reference.rpartition("/")[2], {})
    required = set(model.get("required", []))
    for name, part in model.get("properties", {}).items():
        about = part.get("description", "")
        yield ApiField(name, _format_kind(part), name in required, about)


def _format_kind(part: dict[str, Any]) -> str:
    """A JSON type in a few words, such as `array of string`."""
    if "enum" in part:
        return " | ".join(str(value) for value in part["enum"])
    if "$ref" in part:
        return "object"
    choices = part.get("anyOf", part.get("oneOf", []))
    if choices:
        return " or ".join(dict.fromkeys(_format_kind(choice) for choice in choices))
    kind = str(part.get("type", "any"))
    return f"{kind} of {_format_kind(part['items'])}" if "items" in part else kind
