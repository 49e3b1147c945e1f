"""Public path of `KnownFailure`, which installations import from here."""

from __future__ import annotations

from .tool_services.executors import KnownFailure

__all__ = ["KnownFailure"]
