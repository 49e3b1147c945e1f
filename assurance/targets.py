"""Whether a decision is about a target that nobody decided on before.

The targets of a call are the payee, account, recipients or person that the tool's view
names. A call without one has the first of its tool's keys, such as the customer: later
keys are often the ids of single orders, which are always new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from policies import tools
from policies.documents import ToolDefinition
from reviews.choices import DECIDED
from reviews.models import Decision, RequestVersion

from .datasets.redaction import TARGET_ROLES, normalise_customer

LOOKED_BACK = timedelta(days=90)
MOST_COMPARED = 2000  # decided requests of the same tool, the newest ones


def list_targets(
    definition: ToolDefinition, args: Mapping[str, Any], keys: Mapping[str, Any]
) -> frozenset[str]:
    """The targets of a call in their normal form. `keys` are those that the tool's
    reader resolved."""
    named = {definition.roles.get(role, "") for role in TARGET_ROLES}
    values = [args.get(name) for name in sorted(named)]
    targets = frozenset(_list_texts(values))
    if targets or not definition.keys:
        return targets
    first = definition.keys[0]
    return frozenset(_list_texts([keys.get(first, args.get(first))]))


def _list_texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str | int) and not isinstance(text, bool):
                yield normalise_customer(text)


def find_first_targets(decisions: Iterable[Decision]) -> frozenset[int]:
    """The ids of the decisions among these with a target that is in no request of the
    same tool that people decided earlier. Two queries a tool."""
    by_tool: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_tool[decision.request.tool_name].append(decision)
    return frozenset(
        pk for of_tool in by_tool.values() for pk in _find_in_tool(of_tool)
    )


def _find_in_tool(decisions: list[Decision]) -> Iterable[int]:
    """The same for decisions on requests of one tool."""
    settled = {decision.pk: decision.request.settled_at for decision in decisions}
    latest = max(at for at in settled.values() if at is not None)
    versions = {
        (version.request_id, version.number): version.revision
        for version in RequestVersion.objects.filter(
            request__in=[decision.request_id for decision in decisions]
        ).select_related("revision__tool")
    }
    revisions = {
        decision.pk: versions[decision.request_id, decision.version]
        for decision in decisions
    }
    newest = revisions[max(revisions)]
    definition = tools.load_definition(newest.known_tool)
    first = _load_first_decided(newest.known_tool.name, definition, latest)
    for pk, revision in revisions.items():
        keys = revision.reading.get("keys") or {}
        targets = list_targets(definition, revision.args, keys)
        at = settled[pk]
        if at is not None and any(first.get(target, at) >= at for target in targets):
            yield pk


def _load_first_decided(
    tool: str, definition: ToolDefinition, latest: datetime
) -> dict[str, datetime]:
    """When people first decided on each target of a tool, up to and including
    `latest`."""
    rows = (
        RequestVersion.objects.filter(
            number=F("request__version"),
            request__canary=False,
            request__tool_name=tool,
            request__status__in=DECIDED,
            request__settled_at__gt=latest - LOOKED_BACK,
            request__settled_at__lte=latest,
            revision__removed_after=None,
        )
        .order_by("-request__settled_at")
        .values_list(
            "request__settled_at", "revision__canonical", "revision__reading__keys"
        )[:MOST_COMPARED]
    )
    first_decided: dict[str, datetime] = {}
    for at, blob, keys in rows:
        assert at is not None  # the filter says so
        args = json.loads(bytes(blob))["args"]
        first_decided |= dict.fromkeys(list_targets(definition, args, keys or {}), at)
    return first_decided
