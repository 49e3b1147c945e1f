"""A reason code as an option of a form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonChoice:
    """One reason code with its label."""

    code: str
    label: str
    checked: bool
