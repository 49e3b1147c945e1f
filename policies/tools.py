"""Tools as immutable rows: the current version of a tool, its definition, and the
check of arguments against it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Max

from journal import transactions
from journal.errors import FieldError

from . import active, amounts, locks, schemas, undeclared_tools
from .calendars import parse_duration
from .documents import USUAL_WINDOW, Document, ToolDefinition, UndeclaredTool
from .models import PolicyVersion, Queue, Tool
from .tool_descriptions import NOTHING_SAID, ToolDescription

_definitions: dict[str, ToolDefinition] = {}


def find_current_tool(name: str, policy: PolicyVersion | None = None) -> Tool | None:
    """The version of a tool that the active policy names; None for an unknown tool, and
    without an active policy.

    A caller that has just loaded the active policy passes it to save a query.
    """
    version = policy or active.find_active_policy()
    return active.load_tools(version).get(name) if version else None


def find_successor(tool: Tool, policy: PolicyVersion | None) -> Tool | None:
    """The version by which the policy judges a call of this one: the declared version
    of today or, for a tool that was and is undeclared, itself. None for a tool that is
    unknown now, and without a policy."""
    if policy is None:
        return None
    declared = find_current_tool(tool.name, policy)
    if declared is not None or not load_definition(tool).is_undeclared:
        return declared
    held = active.load_document(policy).held_unknown
    return tool if held and held.hold == tool.queue.name else None


def find_undeclared_tool(
    name: str,
    args: Mapping[str, Any],
    policy: PolicyVersion,
    *,
    described: ToolDescription = NOTHING_SAID,
    add: bool,
) -> Tool | None:
    """The version of an undeclared tool that takes these arguments; None where the
    policy refuses unknown tools, or there are too many arguments, or earlier calls of
    this name had too many different forms. A new version is added, in the caller's
    transaction, or is a draft that nobody stores."""
    held = active.load_document(policy).held_unknown
    if held is None or not undeclared_tools.can_hold(name, args):
        return None
    definition = undeclared_tools.build_definition(name, args, held, described)
    digest = active.compute_digest(active.to_plain_data(definition))
    known = Tool.objects.select_related("queue").filter(name=name)
    version = known.filter(digest=digest).first()
    if version is None and add:
        transactions.require_transaction("Adding an undeclared tool")
        # Calls of one name and activations take turns: each version has its number.
        locks.lock_policy_versions()
        version = known.filter(digest=digest).first()
    if version is None:
        forms = known.filter(definition__has_key="undeclared", queue__name=held.hold)
        if forms.count() >= undeclared_tools.MOST_FORMS:  # guard: unknown-forms
            return None
        last = known.aggregate(last=Max("version"))["last"] or 0
        version = _build_row(definition, last + 1, Queue.objects.get(name=held.hold))
        if add:
            version.save(force_insert=True)
    return version


def load_description(tool: Tool) -> ToolDescription:
    """What the agent described of an undeclared tool; nothing of a declared one."""
    definition = load_definition(tool)
    if not isinstance(definition, UndeclaredTool):
        return NOTHING_SAID
    return ToolDescription(
        definition.description, definition.seen_schema, definition.schema_problem
    )


def load_definition(tool: Tool) -> ToolDefinition:
    """The parsed definition of a tool row, cached: rows never change."""
    if tool.digest not in _definitions:
        kind = UndeclaredTool if "undeclared" in tool.definition else ToolDefinition
        _definitions[tool.digest] = kind.model_validate(tool.definition)
    return _definitions[tool.digest]


def load_longest_window() -> timedelta:
    """The longest execution window of any tool, old versions included."""
    durations = Tool.objects.values_list("definition__window", flat=True).distinct()
    windows = [parse_duration(window) for window in durations]
    return max(windows, default=USUAL_WINDOW)


def list_argument_errors(tool: Tool, args: Any) -> list[FieldError]:
    """The errors of the arguments, by path (`args.amount`); empty when they fit.

    It checks the JSON Schema (2020-12; unknown properties are refused unless the schema
    says otherwise). If that finds nothing, it checks the amounts of money: decimal
    strings with at most as many decimals as the currency has.
    """
    definition = load_definition(tool)
    return schemas.list_errors(definition.validator, args) or list(
        amounts.list_errors(definition, args)
    )


def add_queues(names: Mapping[str, str]) -> None:
    """Add queues, given as name -> title. A queue that exists keeps its people and gets
    the new title. Caller holds a transaction."""
    transactions.require_transaction("Adding queues")
    Queue.objects.bulk_create(
        [Queue(name=name, title=title) for name, title in names.items()],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["title"],
    )


def sync_tools(document: Document) -> None:
    """Add the document's queues and tools. A tool gets a new version only when no
    version of it has the same definition. Caller holds a transaction and the lock on
    policy versions."""
    add_queues(document.queues)
    queues = {queue.name: queue for queue in Queue.objects.all()}
    before = Tool.objects.order_by("version").values_list("name", "digest", "version")
    known = {(name, digest) for name, digest, _ in before}
    last = {name: version for name, _, version in before}
    rows = [
        _build_row(tool, last.get(tool.name, 0) + 1, queues[tool.queue])
        for tool in document.tools.values()
    ]
    Tool.objects.bulk_create(row for row in rows if (row.name, row.digest) not in known)


def _build_row(tool: ToolDefinition, version: int, queue: Queue) -> Tool:
    data = active.to_plain_data(tool)
    return Tool(
        name=tool.name,
        version=version,
        definition=data,
        digest=active.compute_digest(data),
        risk=tool.risk,
        execution_class=tool.execution_class,
        queue=queue,
    )
