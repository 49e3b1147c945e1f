"""The fallback: typed rows and the badge "No dedicated view". Pure."""

from __future__ import annotations

from .common import Subject, present
from .shapes import Presentation


def show(subject: Subject) -> Presentation:
    """Everything that can be said of a tool nobody wrote a view for."""
    return present(subject, dedicated=False)
