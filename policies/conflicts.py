"""Finds claims of an agent that a fact of the tool's reader contradicts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .conditions import ConditionError, ConditionFacts
from .documents import ToolDefinition


def list_conflicts(
    definition: ToolDefinition, facts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The declared conflicts that these facts show, as plain data: `id`, `text`, and
    `checked`.

    `facts` are those of `policies.facts.collect_facts`. A conflict that cannot be
    checked, because the reader did not give a fact it needs, is listed with `checked`
    false, so that nobody takes the missing fact for agreement.
    """
    bound = ConditionFacts(facts)
    conflicts = []
    for conflict in definition.review.conflicts:
        checked = True
        try:
            if not conflict.condition.holds(bound):
                continue
        except ConditionError:
            checked = False
        conflicts.append({"id": conflict.id, "text": conflict.text, "checked": checked})
    return conflicts
