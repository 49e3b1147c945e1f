"""One line about this process's servers, for pages that lead to the health page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from . import probes


def add_summary(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `health_problems` in templates. Asks only once a template
    reads it."""
    return {"health_problems": list_problems}


def list_problems() -> list[str]:
    """What this process last found wrong. Takes no query."""
    found = probes.list_degradations().items()
    return [f"{name}: {text}" for name, text in found if text != probes.OK]
