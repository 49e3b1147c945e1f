"""What agents call (api.md). Parse, look up outside, call one operation, answer."""

from __future__ import annotations

from ninja import Router

from . import proposals, redeeming, runs
from .calls import note_refusal

__all__ = ["note_refusal", "router"]

router = Router()
for part in (proposals, redeeming, runs):
    router.add_router("", part.router)
