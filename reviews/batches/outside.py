"""What is asked before a verdict on many: every item's verifiers, outside any lock."""

from __future__ import annotations

from collections.abc import Mapping

from journal import clock
from journal.errors import Invalid, NotFound, VerifierRefused
from policies import tools
from reviews.choices import Verdict
from reviews.decisions import preflight as alone
from reviews.decisions import verdicts
from reviews.decisions.preflight import Outside
from reviews.models import Batch

from . import membership
from .membership import Member
from .said import SaidOfMany, naming, said_of

Outsides = Mapping[str, Outside]


def look(said: SaidOfMany) -> Outsides:
    """Every item's verifiers, before any lock is taken."""
    if said.verdict not in verdicts.VERDICTS:
        raise Invalid(
            "A batch is approved, rejected or escalated. Nothing was recorded."
        )
    batch = Batch.objects.select_related("tool").filter(pk=said.batch_id).first()
    if batch is None:
        raise NotFound
    asks = said.verdict is Verdict.APPROVE and tools.definition(batch.tool).verifiers
    if not asks:
        return {}
    members = membership.load(batch, now=clock.now())
    named = [one for one in members if one.id in said.items and not one.gone]
    return {one.id: _asked(said, one) for one in named}


def _asked(said: SaidOfMany, member: Member) -> Outside:
    with naming(member):
        found = alone.look(said_of(said, member))
        if found.raised:
            raise VerifierRefused(
                "A verifier asks for more authority for one of these, so none was"
                " decided. Leave it out and decide it alone."
            )
    return found
