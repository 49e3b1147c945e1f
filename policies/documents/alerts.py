"""Alerts of the policy: when a figure of the statistics raises an alarm."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..choices import Risk
from .names import DocumentPart, ToolOfRule

# The rates that an alert may watch, as docs/metrics.md defines them.
AlertFigure = Literal[
    "unmodified_approval",
    "correction_rate",
    "expired_requests",
    "missed_in_flood",
    "fast_decisions",
    "flagged_approval",
    "regret",
]
Share = Annotated[float, Field(ge=0, le=1)]


class Alert(DocumentPart):
    """When a rate of the statistics raises an alarm, for each tool and risk level by
    itself. The alarm is resolved when the rate no longer crosses the threshold."""

    figure: AlertFigure
    tools: list[ToolOfRule] = Field(default=["*"], min_length=1)
    risk: list[Risk] = Field(default_factory=lambda: list(Risk), min_length=1)
    above: Share | None = None  # a rate from 0 to 1
    below: Share | None = None
    # The alarm needs at least so many cases in the period.
    least: int = Field(default=20, ge=1, le=1_000_000, strict=True)
    days: int = Field(default=30, ge=1, le=90, strict=True)  # UTC days up to today

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise ValueError("set either above or below")
        return self

    def concerns(self, tool: str, risk: str) -> bool:
        """Whether it watches this tool at this risk level."""
        return ("*" in self.tools or tool in self.tools) and risk in self.risk

    def is_crossed(self, count: int, total: int) -> bool:
        """Whether so many of so many cases cross the threshold."""
        if total < self.least:
            return False
        if self.above is not None:
            return count / total > self.above
        return self.below is not None and count / total < self.below


def build_usual_alerts() -> list[Alert]:
    """Nearly all approved without a change over many requests, or less than half."""
    return [
        Alert(figure="unmodified_approval", above=0.95, least=200),
        Alert(figure="unmodified_approval", below=0.5, least=20),
    ]
