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
    found = frozenset(_list_texts(values))
    if found or not definition.keys:
        return found
    first = definition.keys[0]
    return frozenset(_list_texts([keys.get(first, args.get(first))]))


def _list_texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int) and not isinstance(one, bool):
                yield normalise_customer(one)


def find_first_targets(decisions: Iterable[Decision]) -> frozenset[int]:
    """The ids of the decisions among these with a target that is in no request of the
    same tool that people decided earlier. Two queries a tool."""
    by_tool: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_tool[decision.request.tool_name].append(decision)
    return frozenset(pk for found in by_tool.values() for pk in _find_in_tool(found))


def _find_in_tool(decisions: list[Decision]) -> Iterable[int]:
    """The same for decisions on requests of one tool."""
    settled = {one.pk: one.request.settled_at for one in decisions}
    latest = max(at for at in settled.values() if at is not None)
    versions = {
        (one.request_id, one.number): one.revision
        for one in RequestVersion.objects.filter(
            request__in=[one.request_id for one in decisions]
        ).select_related("revision__tool")
    }
    revisions = {one.pk: versions[one.request_id, one.version] for one in decisions}
    newest = revisions[max(revisions)]
    definition = tools.load_definition(newest.known_tool)
    first = _load_first_decided(newest.known_tool.name, definition, latest)
    for pk, revision in revisions.items():
        keys = revision.reading.get("keys") or {}
        found = list_targets(definition, revision.args, keys)
        at = settled[pk]
        if at is not None and any(first.get(one, at) >= at for one in found):
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
        )
        .order_by("-request__settled_at")
        .values_list(
            "request__settled_at", "revision__canonical", "revision__reading__keys"
        )[:MOST_COMPARED]
    )
    found: dict[str, datetime] = {}
    for at, blob, keys in rows:
        assert at is not None  # the filter says so
        args = json.loads(bytes(blob))["args"]
        found |= dict.fromkeys(list_targets(definition, args, keys or {}), at)
    return found
