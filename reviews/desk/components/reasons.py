"""A reason code as a choice of a form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonChoice:
    code: str
    label: str
    checked: bool
