"""Which requests may be decided together, the key that members of a batch share, and
the digest that binds a decision to an exact ordered list.

Runs no query of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from journal import canonical
from policies.choices import Risk, Tier
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.effects import describe
from reviews.models import RequestVersion
from reviews.presenters import addressed
from reviews.requests.versions import needs_written_answer


def may_be_batched(version: RequestVersion, definition: ToolDefinition) -> bool:
    """Whether this request may be part of a batch: one approval is enough, and the
    effect can be reversed."""
    back = definition.reversal
    return (
        definition.batchable is not None
        and back is not None
        and back.kind != "irreversible"
        and version.tier == Tier.APPROVE
        and version.risk != Risk.CRITICAL
        # A step-up is for one request and its hash (docs/invariants.md I16).
        and not version.step_up
        and sum(step["required"] for step in version.steps) == 1
        and not version.carried
        and not version.escalated_by
        and not version.edited_by
        and _is_within_item_limit(version, definition)
        and not addresses_reviewer(version)
        # What Counterseal found in it is looked at on its own page.
        and not needs_written_answer(version)
    )


def addresses_reviewer(version: RequestVersion) -> bool:
    """Whether the agent's words or the evidence address the reviewer, for instance to
    urge an approval. Nobody reads them in a batch, so the request is decided alone."""
    revision = version.revision
    texts = [revision.rationale, revision.expected_outcome, revision.reversal]
    for other in revision.alternatives:
        texts += [str(other.get("action", "")), str(other.get("why_not", ""))]
    texts += [item.all_text for item in describe.list_evidence(revision)]
    return any(map(addressed.is_addressed_to_reviewer, texts))


def _is_within_item_limit(version: RequestVersion, definition: ToolDefinition) -> bool:
    """A tool that moves money needs a limit per item, in the request's currency."""
    revision, batch = version.revision, definition.batchable
    if not definition.moves_money:
        return True
    if revision.amount_minor is None or batch is None or batch.per_item is None:
        return False
    most = batch.per_item.money
    return revision.currency == most.currency and revision.amount_minor <= most.minor


def compute_total(versions: Iterable[RequestVersion]) -> Money | None:
    """Sum the amounts of a batch, in its one currency; None where no money moves."""
    amounts = [
        Money(version.revision.amount_minor, version.revision.currency)
        for version in versions
        if version.revision.amount_minor is not None
    ]
    if not amounts:
        return None
    return Money(sum(amount.minor for amount in amounts), amounts[0].currency)


def is_above_batch_limit(total: Money | None, definition: ToolDefinition) -> bool:
    batch = definition.batchable
    if total is None or batch is None or batch.total is None:
        return False
    most = batch.total.money
    return total.currency != most.currency or total.minor > most.minor


def compute_batch_key(
    version: RequestVersion,
    definition: ToolDefinition,
    *,
    agent: str,
    group: str = "",
) -> str:
    """Digest of what all members of a batch share: tool version, policy, rules, tier,
    risk, queue, steps, agent and its version, group, shape of the arguments, every
    argument that may not differ, and the currency."""
    revision = version.revision
    varying = definition.batchable.varying if definition.batchable else []
    args = revision.args
    common = {
        "tool": revision.tool_id,
        "policy": version.policy_id,
        "rules": [rule["id"] for rule in version.rules],
        "tier": version.tier,
        "risk": version.risk,
        "queue": version.queue_id,
        "steps": version.steps,
        "reason": version.requires_reason,
        "recall": version.recall_seconds,
        "agent": [agent, revision.agent_version],
        "group": group,
        "shape": _compute_shape(args),
        "args": {name: args[name] for name in args if name not in varying},
        "currency": revision.currency,
    }
    return canonical.digest(canonical.encode(common))


def _compute_shape(value: Any) -> Any:
    """Member names and types without the values; a list by the types it contains."""
    if isinstance(value, Mapping):
        return {name: _compute_shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        inside = {canonical.encode(_compute_shape(inner)).decode() for inner in value}
        return ["list", *sorted(inside)]
    return "number" if _is_number(value) else type(value).__name__


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compute_list_digest(entries: Iterable[Mapping[str, Any]]) -> str:
    """Batch digest: SHA-256 over the RFC 8785 bytes of the ordered list of entries. It
    changes when an entry is added, removed, changed or moved."""
    return canonical.digest(canonical.encode(list(entries)))
