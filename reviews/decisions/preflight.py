"""What is found out before a verdict is recorded, outside any transaction: look-ups for
edited arguments, and verifiers (gate.md section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journal.errors import InvalidArgs, NotFound, VerifierRefused
from policies import tools
from policies.choices import Tier
from reviews import permissions
from reviews.choices import RequestStatus, Verdict
from reviews.governance import readings
from reviews.models import ApprovalRequest, RequestVersion
from reviews.tool_services import readers, verifiers
from reviews.tool_services.readers import Reading

from .submission import Said


@dataclass(frozen=True, slots=True)
class Outside:
    """What was found out before the transaction: look-ups and verifiers."""

    # It was open in exactly this version then: otherwise nobody was asked.
    current: bool = True
    reading: Reading | None = None
    least: Tier = Tier.AUTO  # what a verifier asked for
    raised: bool = False  # and that is more than this version asks for


def look(said: Said) -> Outside:
    """Look-ups for edited arguments and verifiers, before any lock is taken.

    Nobody is asked for somebody who may not decide this, nor about arguments that
    break the schema; what is stale is refused under the lock.
    """
    request = (
        ApprovalRequest.objects.select_related("proposal", "queue")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if not said.commits:
        return Outside()
    if request.status != RequestStatus.PENDING or said.is_stale(request):
        return Outside(current=False)
    version = request.sealed
    revision = version.revision
    definition = tools.definition(revision.known_tool)
    asked = verifiers.registered(definition, request.queue.name)
    if said.verdict is not Verdict.MODIFY and not asked:
        return Outside()
    permissions.check_can_decide(said.person, request, version)
    args: Mapping[str, Any] = revision.args
    reading = None
    if said.verdict is Verdict.MODIFY and said.args is not None:
        args = said.args
        if problems := tools.validate(revision.known_tool, args):
            raise InvalidArgs(errors=problems)
        asker = readings.asker_of(request.proposal)
        reading = readers.read(definition, args, asker=asker)
    found = verifiers.verify(asked, _sealed(said, version, args), stage="decision")
    if isinstance(found, verifiers.Refusal):
        raise VerifierRefused(found.detail, verifier=found.code)
    least = found.tier if found else Tier.AUTO
    raised = least.rank > Tier(version.tier).rank
    return Outside(reading=reading, least=least, raised=raised)


def _sealed(
    said: Said, version: RequestVersion, args: Mapping[str, Any]
) -> dict[str, Any]:
    """What a verifier sees: facts of the question, never the agent's words."""
    return {
        "request": version.request_id,
        "version": version.number,
        "seal": version.seal,
        "tool": version.revision.known_tool.name,
        "tier": version.tier,
        "risk": version.risk,
        "verdict": said.verdict.value,
        "args": dict(args),
        "action_hash": version.revision.action_hash,
    }
