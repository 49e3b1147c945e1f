"""The metadata of the policy decision point (Authorization API 1.0, section "Policy
Decision Point Metadata")."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def build_metadata() -> dict[str, Any]:
    """Build the document of `/.well-known/authzen-configuration`."""
    here = settings.HOLDPOINT.base_url
    return {
        "policy_decision_point": here,
        "access_evaluation_endpoint": f"{here}/access/v1/evaluation",
        "access_request_endpoint": f"{here}/access/v1/requests",
        "jwks_uri": f"{here}/.well-known/jwks.json",
        "capabilities": ["urn:openid:authzen:capability:access-request"],
        "supported_obligations": ["custom"],
    }
