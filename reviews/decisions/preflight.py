"""Calls to other services before a verdict is recorded, outside any transaction: the
tool's reader for edited arguments, and verifiers (gate.md section 6)."""

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
    """The results of the calls before the transaction: a reading and the verifiers'."""

    # Whether the request was open in exactly this version; if not, nothing was called.
    current: bool = True
    reading: Reading | None = None
    least: Tier = Tier.AUTO  # the tier that a verifier demands
    raised: bool = False  # whether that is more than this version asks for


def look(said: Said) -> Outside:
    """Read the state for edited arguments and call the verifiers, before any lock.

    Nothing is called for a person who may not decide this, or for arguments that break
    the schema. A stale verdict is refused later, under the lock.

    Raises NotFound, NotYours, InvalidArgs, VerifierRefused.
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
    """The input of a verifier: facts about the request, never the agent's words."""
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
