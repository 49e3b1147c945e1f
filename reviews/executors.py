"""`KnownFailure` under the path by which installations import it."""

from __future__ import annotations

from .tool_services.executors import KnownFailure

__all__ = ["KnownFailure"]
