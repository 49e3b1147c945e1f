"""What an edit would lead to, asked while it is typed: nothing is decided, written,
locked or logged, and no verifier is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from journal import clock
from journal.errors import InvalidArgs, NotFound, Stale
from policies import tools
from policies.choices import Risk, Tier

from . import permissions
from .decisions.case import Case
from .decisions.modify import weigh
from .governance import readings
from .models import ApprovalRequest
from .quorum import StepData
from .requests import versions
from .said import Said
from .tool_services import readers
from .tool_services.readers import Reading


@dataclass(frozen=True, slots=True)
class Preview:
    """How much authority the edit would need, beside what is asked now."""

    tier: Tier
    tier_now: Tier
    risk: Risk
    risk_now: Risk
    steps: Sequence[StepData]
    rules: Sequence[str]  # texts of the rules that hold for the edit and not yet now
    reading: Reading
    exceeds: bool  # what the editor may decide, so that others are asked
    verifiers: int  # that will be asked when it is committed

    @property
    def rises(self) -> bool:
        """Whether it is no longer the editor's own approval."""
        return self.tier.rank > self.tier_now.rank

    @property
    def is_enough(self) -> bool:
        """Whether the editor's approval is all that it needs."""
        alone = sum(step["required"] for step in self.steps) == 1
        return alone and not self.rises and not self.exceeds


def preview(said: Said) -> Preview:
    """Weigh an edit for the person who types it.

    Raises what committing it would, but for verifiers, reasons and proofs: NotFound,
    NotYours, Stale, InvalidArgs, Invalid, Policy. Asks the tool's reader once, outside
    any transaction.
    """
    request = (
        ApprovalRequest.objects.select_related("proposal")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if (said.version, said.action_hash) != (request.version, request.action_hash):
        raise Stale(current_version=request.version)
    revision = request.sealed.revision
    permissions.check_can_decide(said.person, request, request.sealed)
    if problems := tools.validate(revision.known_tool, said.args):
        raise InvalidArgs("Some fields are not right yet.", errors=problems)
    definition = tools.definition(revision.known_tool)
    asker = readings.asker_of(request.proposal)
    reading = readers.read(definition, said.args or {}, asker=asker)
    return _weigh(said, request, reading)


@transaction.atomic(durable=True)
def _weigh(said: Said, request: ApprovalRequest, reading: Reading) -> Preview:
    version = request.sealed
    role = permissions.check_can_decide(said.person, request, version)
    case = Case(said, request, version, role, clock.now())
    _, ruling, exceeds = weigh(case, reading, firmly=False)
    found, held = ruling.evaluation, {rule["id"] for rule in version.rules}
    return Preview(
        tier=versions.asked_tier(found),
        tier_now=Tier(request.tier),
        risk=found.risk,
        risk_now=Risk(request.risk),
        steps=versions.steps_of(found),
        rules=[rule.text for rule in found.rules if rule.id not in held],
        reading=reading,
        exceeds=exceeds,
        verifiers=len(ruling.definition.verifiers) if ruling.definition else 0,
    )
