"""Verifiers: registered checks that may refuse a decision or an effect, or demand more
authority. A verifier can never approve.

A verifier that cannot answer refuses: an error, a time-out and a malformed answer each
count as a `VerifierRefusal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import structlog
from django.conf import settings

from policies import active
from policies.callables import load_function
from policies.choices import Tier
from policies.documents import CallableVerifier, ToolDefinition, WebhookTarget
from policies.models import PolicyVersion
from reviews.outbound import webhooks
from reviews.outbound.connection import Deadline

log = structlog.get_logger(__name__)

Stage = Literal["decision", "effect"]


@dataclass(frozen=True, slots=True)
class VerifierRefusal:
    """A verifier's refusal. At a decision the request stays pending; right before the
    effect the execution is refused."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class VerifierDemand:
    """A verifier's demand for more authority: at least `tier`."""

    tier: Tier


VerifierAnswer = VerifierRefusal | VerifierDemand | None
Verifier = CallableVerifier | WebhookTarget


def list_verifiers(
    definition: ToolDefinition, queues: Iterable[str], policy: PolicyVersion | None
) -> list[Verifier]:
    """List the verifiers of an effect: those of its tool, in the version that was
    proposed, then those that the active policy names for its queues: the one that the
    policy chose, and the one that a person moved its request to."""
    document = active.load_document(policy) if policy else None
    named = document.verifiers if document else {}
    of_queues = [named.get(queue, []) for queue in dict.fromkeys(queues)]
    return [*definition.verifiers, *chain.from_iterable(of_queues)]


def may_have_verifiers(
    definition: ToolDefinition, policy: PolicyVersion | None
) -> bool:
    """Whether an effect of this tool may have verifiers: its tool's, or a queue's."""
    document = active.load_document(policy) if policy else None
    return bool(definition.verifiers or (document and document.verifiers))


def run_verifiers(
    registered: Sequence[Verifier], sealed: Mapping[str, Any], *, stage: Stage
) -> VerifierAnswer:
    """Ask these verifiers, in order. Never raises. `sealed` is the sealed request with
    the verdict and the final arguments (`args`). The first refusal is returned at once;
    of several demands the one with the highest tier; None means that no verifier
    objects. All verifiers together get `http_timeout` seconds. Caller holds no
    transaction."""
    deadline = Deadline(settings.COUNTERSEAL.http_timeout)
    demands: list[VerifierDemand] = []
    for verifier in registered:
        answer = _ask_safely(verifier, sealed, stage, deadline)
        if isinstance(answer, VerifierRefusal):
            return answer
        if answer is not None:
            demands.append(answer)
    return max(demands, key=lambda demand: demand.tier.rank, default=None)


def _ask_safely(
    verifier: Verifier,
    sealed: Mapping[str, Any],
    stage: Stage,
    deadline: Deadline,
) -> VerifierAnswer:
    try:
        if verifier.kind == "webhook":
            return _ask_webhook(verifier.url, sealed, stage, deadline)
        return _call_function(verifier, sealed, stage)
    except Exception as error:
        # Never None: a verifier that is down must not open the gate. The error's text
        # may quote the arguments, so only its type is kept.
        name = type(error).__name__
        log.error("verifier_failed", verifier=verifier.kind, stage=stage, error=name)
        return VerifierRefusal(
            "verifier_failed", f"A verifier could not answer ({name})."
        )


def _call_function(
    verifier: CallableVerifier, sealed: Mapping[str, Any], stage: Stage
) -> VerifierAnswer:
    answer = load_function(verifier.path)(sealed, stage=stage, **verifier.options)
    if answer is None or isinstance(answer, VerifierRefusal | VerifierDemand):
        return answer
    raise TypeError(f"{verifier.path} returned neither a refusal, a demand nor None")


def _ask_webhook(
    url: str, sealed: Mapping[str, Any], stage: Stage, deadline: Deadline
) -> VerifierAnswer:
    """Ask a verifier's service, which answers `{"status": "ok"}`, `{"status":
    "refused", "code", "detail"}` or `{"status": "more_authority", "tier"}`."""
    payload = {"stage": stage, **sealed}
    reply = webhooks.post_signed_json(
        url, payload, timeout=deadline.remaining()
    ).document()
    status = reply.get("status")
    if status == "ok":
        return None
    if status == "refused":
        return VerifierRefusal(
            _parse_short_text(reply, "code", 64) or "refused",
            _parse_short_text(reply, "detail"),
        )
    if status != "more_authority":
        raise ValueError("the verifier's answer has no known status")
    tier = Tier(reply.get("tier", ""))
    if tier is Tier.BLOCK:
        return VerifierRefusal("blocked", "A verifier forbids this.")
    return VerifierDemand(tier)


def _parse_short_text(reply: Mapping[str, Any], name: str, length: int = 500) -> str:
    value = reply.get(name)
    return value[:length] if isinstance(value, str) else ""
