"""What agents call (api.md). Parse, look up outside, call one operation, answer."""

from __future__ import annotations

from ninja import Router

from . import executions, proposals, threads
from .auth import note_refusal

__all__ = ["note_refusal", "router"]

router = Router()
for part in (proposals, executions, threads):
    router.add_router("", part.router)
