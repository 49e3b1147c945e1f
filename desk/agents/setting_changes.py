"""The looser settings that wait for a second administrator: their lines on the agent's
page and on the overview, and the page where they are answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents import agent_settings, setting_changes
from agents.choices import SettingsStatus
from agents.models import Agent, SettingsChange
from journal.errors import NotFound
from policies.models import Person

MOST_CHANGES = 10  # earlier ones on a page
STATUS_LABELS = {
    SettingsStatus.PROPOSED: "Waits for a second administrator",
    SettingsStatus.CONFIRMED: "Confirmed",
    SettingsStatus.REFUSED: "Refused",
    SettingsStatus.WITHDRAWN: "Withdrawn",
    SettingsStatus.LAPSED: "Nobody answered within a week",
    SettingsStatus.VOID: "Void: the agent's settings were changed meanwhile",
}


@dataclass(frozen=True, slots=True)
class SettingsLine:
    """One change of an agent's settings. `wishes` are what it asks for, in words;
    `why_not` says why this reader may not answer it, and `own` that they asked for
    it."""

    row: SettingsChange
    state: str
    wishes: Sequence[str]
    waits: bool
    why_not: str
    own: bool


def list_waiting(reader: Person) -> list[SettingsLine]:
    """The changes of every agent that wait, oldest first."""
    return build_lines(setting_changes.list_waiting(), reader)


def list_changes(agent: Agent, reader: Person) -> list[SettingsLine]:
    """The agent's changes, newest first. One that waits is the newest."""
    rows = agent.changes.select_related("agent", "asked_by", "settled_by")
    return build_lines(rows.order_by("-asked_at")[:MOST_CHANGES], reader)


def load_change(agent: Agent, pk: int, reader: Person) -> SettingsLine:
    """One change of the agent. Raises NotFound."""
    rows = agent.changes.select_related("agent", "asked_by", "settled_by")
    for line in build_lines(rows.filter(pk=pk), reader):
        return line
    raise NotFound


def build_lines(rows: Iterable[SettingsChange], reader: Person) -> list[SettingsLine]:
    """The changes as this reader sees them."""
    return [
        SettingsLine(
            row=row,
            state=STATUS_LABELS[SettingsStatus(row.status)],
            wishes=agent_settings.describe_difference(
                agent_settings.build_settings(row.before),
                agent_settings.build_settings(row.wanted),
            ),
            waits=row.status == SettingsStatus.PROPOSED,
            why_not=setting_changes.describe_why_no_answer(row, reader),
            own=row.asked_by_id == reader.pk,
        )
        for row in rows
    ]
