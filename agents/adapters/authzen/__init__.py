"""OpenID AuthZEN, spoken by the gate itself: the Authorization API 1.0 with its Access
Request and Approval Profile (draft 1). docs/authzen.md says what a caller sees."""

from __future__ import annotations

from . import errors, metadata
from .endpoints import router

__all__ = ["errors", "metadata", "router"]
