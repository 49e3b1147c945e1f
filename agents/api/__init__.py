"""The HTTP API for agents; `/api/v1/docs` of a running gate describes every call. An
endpoint parses the body, calls the tool's reader outside any transaction, calls one
operation, and answers."""

from __future__ import annotations

from ninja import Router

from . import evidence, executions, proposals, questions, threads
from .auth import record_refusal

__all__ = ["record_refusal", "router"]

router = Router()
for part in (proposals, evidence, executions, questions, threads):
    router.add_router("", part.router)
