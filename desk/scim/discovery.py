"""What the endpoint says of itself (RFC 7643, 5 to 7): what it can do, its kinds of
resources, and their attributes."""

from __future__ import annotations

from typing import Any

from .answers import build_address
from .resources import SCHEMAS

MOST_RESULTS = 200
MOST_BYTES = 1024 * 1024


def build_service_config() -> dict[str, Any]:
    """The document of /ServiceProviderConfig."""
    return {
        "schemas": [f"{SCHEMAS}:ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {
            "supported": False,
            "maxOperations": 0,
            "maxPayloadSize": MOST_BYTES,
        },
        "filter": {"supported": True, "maxResults": MOST_RESULTS},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": False},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "Bearer token",
                "description": "A token from the page People, Provisioning.",
                "primary": True,
            }
        ],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": build_address("ServiceProviderConfig"),
        },
    }


def list_resource_types() -> list[dict[str, Any]]:
    """The documents of /ResourceTypes."""
    return [
        {
            "schemas": [f"{SCHEMAS}:ResourceType"],
            "id": name,
            "name": name,
            "endpoint": f"/{name}s",
            "schema": f"{SCHEMAS}:{name}",
            "meta": {
                "resourceType": "ResourceType",
                "location": build_address("ResourceTypes", name),
            },
        }
        for name in ("User", "Group")
    ]


def list_schemas() -> list[dict[str, Any]]:
    """The documents of /Schemas: the attributes that the gate keeps."""
    user = [
        _describe_attribute("userName", "string", required=True, uniqueness="server"),
        _describe_attribute("externalId", "string", exact=True),
        _describe_attribute("displayName", "string", changes="readOnly"),
        _describe_attribute(
            "name",
            "complex",
            parts=[
                _describe_attribute("formatted", "string", changes="readOnly"),
                _describe_attribute("givenName", "string"),
                _describe_attribute("familyName", "string"),
            ],
        ),
        _describe_attribute(
            "emails", "complex", many=True, required=True, parts=_VALUE
        ),
        _describe_attribute("active", "boolean"),
    ]
    group = [
        _describe_attribute(
            "displayName", "string", required=True, uniqueness="server"
        ),
        _describe_attribute("externalId", "string", exact=True),
        _describe_attribute("members", "complex", many=True, parts=_VALUE[:1]),
    ]
    return [
        {
            "schemas": [f"{SCHEMAS}:Schema"],
            "id": f"{SCHEMAS}:{name}",
            "name": name,
            "description": description,
            "attributes": attributes,
            "meta": {
                "resourceType": "Schema",
                "location": build_address("Schemas", f"{SCHEMAS}:{name}"),
            },
        }
        for name, description, attributes in (
            ("User", "A person with an account", user),
            ("Group", "A group that gives a role and queues", group),
        )
    ]


def _describe_attribute(
    name: str,
    kind: str,
    *,
    required: bool = False,
    uniqueness: str = "none",
    exact: bool = False,
    changes: str = "readWrite",
    many: bool = False,
    parts: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "multiValued": many,
        "required": required,
        "caseExact": exact,
        "mutability": changes,
        "returned": "default",
        "uniqueness": uniqueness,
        **({"subAttributes": parts} if parts else {}),
    }


_VALUE = [
    _describe_attribute("value", "string", required=True),
    _describe_attribute("type", "string"),
    _describe_attribute("primary", "boolean"),
]
